import assert from 'node:assert/strict';
import { pino } from 'pino';
import { startRefusedCalls } from '../../core/refused-calls';
import { DATABASES, quiet, type TestDatabase } from '../support/databases';
import { until } from '../support/until';
import { newPayer, usageRecord } from './ledger-fixture';

for (const { name, open } of DATABASES) {
  describe(`records of refused calls on ${name}`, () => {
    let test: TestDatabase;

    before(async function () {
      this.timeout(60_000);
      test = await open();
    });
    after(() => test.close());

    const countOf = async (accountId: string) =>
      (await test.database('usage_records').where({ account_id: accountId, rid: null, cost_e8: 0 })).length;

    it('are written by themselves, cost nothing and have no reservation', async () => {
      const payer = newPayer();
      const refused = startRefusedCalls({ database: test.database, log: quiet, writeEveryMs: 20 });
      refused.add(usageRecord(payer, { billing: 'released', status: 402, errorCode: 'INSUFFICIENT_BALANCE' }));
      await until('it is written', async () => (await countOf(payer.accountId)) === 1);
      await refused.close();
    });

    it('that wait at the end are written at the end', async () => {
      const payer = newPayer();
      const refused = startRefusedCalls({ database: test.database, log: quiet });
      refused.add(usageRecord(payer));
      refused.add(usageRecord(payer));
      await refused.close();
      assert.equal(await countOf(payer.accountId), 2);
    });

    it('above the bound are dropped and counted, once', async () => {
      const payer = newPayer();
      const lines: string[] = [];
      const log = pino({}, { write: (line: string) => void lines.push(line) });
      const refused = startRefusedCalls({ database: test.database, log, maxWaiting: 3 });
      for (let each = 0; each < 10; each++) refused.add(usageRecord(payer));
      await refused.close();
      assert.equal(await countOf(payer.accountId), 3);
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).dropped),
        [7],
      );
    });
  });
}
