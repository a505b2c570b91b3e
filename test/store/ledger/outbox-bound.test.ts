import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { newId } from '../../../core/base/ids';
import { startOutboxWatch } from '../../../core/ledger/outbox/outbox-watch';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { DATABASES, quiet } from '../../support/databases';
import { emptyRedis } from '../../support/shared';
import { until } from '../../support/until';
import { fundedPayer, instead } from './ledger-fixture';

describe('the size limit of the outbox', () => {
  it('is 0.7 of the memory of Redis, and the outbox is no longer full once its entries are shipped', async () => {
    const { database, close } = (await DATABASES[0]?.open()) ?? assert.fail();
    const url = await emptyRedis();
    const redis = connectRedis(url, quiet);
    await checkRedis(redis);
    const ledger = new RedisLedger({ redis });
    const other = new Redis(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1n);
    for (let each = 0; each < 200; each++) {
      await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1n });
    }
    const share = await ledger.outboxShare();
    assert.ok(share > 0 && share < 0.01, String(share));
    const [, total = ''] = /^total_system_memory:(\d+)/m.exec(await other.info('memory')) ?? [];
    const bytes = Math.round(share * Number(total));
    // The database is away until the outbox is full, which is when entries wait.
    let isAway = true;
    const transaction = ((work: never) =>
      isAway ? Promise.reject(new Error('away')) : database.transaction(work)) as typeof database.transaction;
    const stores = { ledger, shipper: { oldestAgeMs: () => 1_000 }, database: instead(database, { transaction }) };
    const watch = startOutboxWatch({ ...stores, log: quiet, everyMs: 20 });
    try {
      await other.config('SET', 'maxmemory', String(Math.round(bytes / 0.69)));
      assert.ok(Math.abs((await ledger.outboxShare()) - 0.69) < 0.02);
      assert.equal(watch.isFull(), false);
      await other.config('SET', 'maxmemory', String(Math.round(bytes / 0.75)));
      await until('it is full', () => watch.isFull());
      for (const [shard, entries] of await ledger.readOutbox(ALL_SHARDS, 1_000))
        await ledger.trimOutbox(shard, entries);
      await until('it is not full any more', () => !watch.isFull());
      isAway = false;
      const event = await until('its event is written', () =>
        database('events').where({ type: 'outbox.behind' }).first(),
      );
      assert.deepEqual([event.data.level, event.account_id], ['full', null]);
      assert.ok(event.data.share >= 0.7, JSON.stringify(event.data));
    } finally {
      await watch.stop();
      await close();
      await other.config('SET', 'maxmemory', '0');
      other.disconnect();
      await ledger.close();
    }
  });

  it('is checked only while entries wait', async () => {
    let measured = 0;
    let looks = 0;
    let ageMs = 0;
    const ledger = {
      outboxShare: async () => {
        measured += 1;
        return 0.8;
      },
    };
    const shipper = {
      oldestAgeMs: () => {
        looks += 1;
        return ageMs;
      },
    };
    const database = { transaction: () => Promise.reject(new Error('no database')) } as never;
    const watch = startOutboxWatch({ ledger, shipper, database, log: quiet, everyMs: 1 });
    await until('it has looked some times', () => looks > 5);
    assert.equal(measured, 0);
    ageMs = 1;
    await until('it is full', () => watch.isFull());
    ageMs = 0;
    await until('it is not full any more', () => !watch.isFull());
    await watch.stop();
  });
});
