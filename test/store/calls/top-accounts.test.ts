import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import type { Loop } from '../../../core/base/loop';
import { metrics } from '../../../core/base/metrics';
import { ACCOUNT_SUMS, startTopAccounts } from '../../../core/calls/top-accounts';
import { usageOf } from '../../../core/catalog/usage';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';

const NAME = 'tollgate_account_calls_total';

for (const { name, open } of DATABASES) {
  describe(`accounts with metrics of their own, in ${name}`, function () {
    this.timeout(60_000);
    let test: TestDatabase;
    let database: Knex;
    let loop: Loop | undefined;
    before(async () => {
      test = await open();
      database = test.database;
    });
    after(() => test.close());
    beforeEach(() => ACCOUNT_SUMS.take());
    afterEach(async () => {
      await loop?.stop();
      for (const each of ['calls', 'tokens', 'cost_usd']) metrics.removeSingleMetric(`tollgate_account_${each}_total`);
      await database('usage_sums').delete();
    });

    const call = (accountId: string) => ACCOUNT_SUMS.add(accountId, usageOf({ input: 10, output: 5 }), 100n);
    const shown = async () => {
      await metrics.getMetricsAsJSON();
      const { values = [] } = (await metrics.getSingleMetric(NAME)?.get()) ?? {};
      return Object.fromEntries(values.map(({ labels, value }) => [labels['account'], value]));
    };
    const spent = (accountId: string, costE8: number, hoursAgo = 0) => {
      const counts = ['input', 'output', 'total', 'cache_creation', 'cache_read'].map((each) => [`${each}_tokens`, 0]);
      return database('usage_sums').insert({
        ...Object.fromEntries(counts),
        ...{ account_id: accountId, grouped_by: 'none', name: '', status: 200, calls: 1, failed: 0, cost_e8: costE8 },
        hour: database.raw(`date_trunc('hour', now()) - ${hoursAgo} * interval '1 hour'`),
      });
    };
    const start = (most: number) => {
      loop = startTopAccounts({ database, log: quiet, most, everyMs: 50 });
    };

    it('are the first accounts that call, up to the maximum number; all others share one series', async () => {
      const [one, two, three] = [newId(), newId(), newId()];
      start(2);
      for (const each of [one, two, three, one]) call(each);
      assert.deepEqual(await shown(), { [one]: 2, [two]: 1, other: 1 });
    });

    it('are those that recently spent most, once Postgres has reported the spending', async () => {
      const [small, old, large] = [newId(), newId(), newId()];
      start(1);
      for (const each of [small, large]) call(each);
      assert.deepEqual(await shown(), { [small]: 1, other: 1 });
      await spent(small, 100);
      await spent(old, 900, 3);
      await spent(large, 500);
      await until('the small account has no series', async () => !(small in (await shown())));
      for (const each of [small, old, large]) call(each);
      assert.deepEqual(await shown(), { [large]: 1, other: 3 });
    });

    it('do not exist if the configured number is 0', async () => {
      start(0);
      call(newId());
      assert.deepEqual(await shown(), { other: 1 });
    });
  });
}
