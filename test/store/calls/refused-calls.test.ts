import assert from 'node:assert/strict';
import { pino } from 'pino';
import { newId } from '../../../core/base/ids';
import { startRefusedCalls } from '../../../core/calls/refused-calls';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { shardOf } from '../../../core/ledger/shard';
import { sumSomeUntil } from '../../../core/records/usage-roll-up';
import { readSums } from '../../../core/records/usage-sums';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';
import { keyRequest, newPayer, reserveRequest, usageRecord } from '../ledger/ledger-fixture';

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

    it('are written without a reservation, and with a cost of 0', async () => {
      const payer = newPayer();
      const refused = startRefusedCalls({ database: test.database, log: quiet, writeEveryMs: 20 });
      refused.add(usageRecord(payer, { billing: 'released', status: 402, errorCode: 'INSUFFICIENT_BALANCE' }));
      await until('it is written', async () => (await countOf(payer.accountId)) === 1);
      await refused.close();
    });

    it('get the id of their reservation if the ledger had accepted the reserve without answering', async () => {
      const payer = newPayer();
      const ledger = new MemoryLedger();
      await ledger.open();
      await ledger.setAccount(payer.accountId, 'active');
      await ledger.setKey(keyRequest(payer));
      const request = reserveRequest(payer, 0n);
      await ledger.reserve(request);
      const record = usageRecord(payer, { billing: 'released', status: 503, errorCode: 'LEDGER_UNAVAILABLE' });
      const refused = startRefusedCalls({ database: test.database, log: quiet });
      refused.add(record);
      await refused.close();
      await ledger.release({ ...payer, rid: request.rid, record: JSON.stringify(record) });
      await shipShards({ ledger, database: test.database, log: quiet }, [shardOf(payer.accountId)]);
      const rows = await test.database('usage_records').where({ account_id: payer.accountId });
      assert.deepEqual(
        rows.map(({ rid, status }) => [rid, status]),
        [[request.rid, 503]],
      );
    });

    it('are written one by one for the first five of a key, error code and second; one record counts the rest', async () => {
      const [payer, other] = [newPayer(), newPayer()];
      const refused = startRefusedCalls({ database: test.database, log: quiet, nowMs: () => 0 });
      for (let call = 0; call < 1_000; call += 1) {
        refused.add(usageRecord(payer, { status: 402, errorCode: 'INSUFFICIENT_BALANCE' }));
        refused.add(usageRecord(payer, { status: 400, errorCode: 'INVALID_FIELD' }));
        refused.add(usageRecord(other, { status: 402, errorCode: 'INSUFFICIENT_BALANCE' }));
      }
      await refused.close();
      const counts = async ({ accountId }: { readonly accountId: string }, status: number) =>
        test.database('usage_records').where({ account_id: accountId, status }).orderBy('calls').pluck('calls');
      for (const [of, status] of [
        [payer, 402],
        [payer, 400],
        [other, 402],
      ] as const)
        assert.deepEqual(await counts(of, status), [1, 1, 1, 1, 1, 995]);
      const allTime = [{ fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY }];
      const sumOf = async () => (await readSums(test.database, { account: payer.accountId }, allTime))[0];
      const { calls, failed, cost_e8 } = (await sumOf()) ?? {};
      assert.deepEqual([calls, failed, cost_e8], [2_000n, 2_000n, 0n]);
      while (await sumSomeUntil(test.database, new Date()));
      assert.equal((await sumOf())?.calls, 2_000n);
    });

    it('are dropped above their maximum number, and each dropped one is counted once', async () => {
      const payer = newPayer();
      const lines: string[] = [];
      const log = pino({}, { write: (line: string) => void lines.push(line) });
      const refused = startRefusedCalls({ database: test.database, log, maxWaiting: 3 });
      for (let each = 0; each < 10; each++) refused.add(usageRecord({ ...payer, keyId: newId() }));
      await refused.close();
      assert.equal(await countOf(payer.accountId), 3);
      assert.deepEqual(
        lines.map((line) => JSON.parse(line).dropped),
        [7],
      );
    });
  });
}
