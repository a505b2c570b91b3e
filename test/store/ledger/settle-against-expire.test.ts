import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import type { Ledger, ReserveRequest } from '../../../core/ledger/ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import type { Payer } from '../../../core/ledger/payer';
import { openRedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { openDatabase } from '../../../core/storage/database';
import { connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { emptyRedis, newDatabase } from '../../support/shared';
import { fundedPayer, reserveRequest } from './ledger-fixture';

const PAIRS = 10_000;
const PAYERS = 40;
const FUNDS_E8 = 1_000_000n;
const COST_E8 = 3n;
/** The number of pairs that race at the same time. */
const AT_ONCE = 500;

/** Uses one connection for each of two processes, which do not know what the other sends. */
describe(`${PAIRS} settlements against the expiry of their reservations, from two connections`, function () {
  this.timeout(120_000);
  let database: Knex;
  const ledgers: Ledger[] = [];
  const closings: (() => unknown)[] = [];

  before(async () => {
    database = await openDatabase({ databaseUrl: await newDatabase(), dataFolder: '', log: quiet });
    const url = await emptyRedis();
    for (let each = 0; each < 2; each += 1) {
      const redis = connectRedis(url, quiet);
      // Waits long for answers, because a busy machine must not fail the test.
      if (redis instanceof Redis) redis.options.commandTimeout = 30_000;
      const ledger = await openRedisLedger({ redis, log: quiet });
      if (each === 0) await ledger.open();
      ledgers.push(ledger);
      closings.push(
        () => ledger.close(),
        () => redis.disconnect(),
      );
    }
  });
  after(async () => {
    for (const close of closings) await close();
    await database?.destroy();
  });

  it('close each reservation once, charge only settled ones, and leave one row each', async () => {
    const [one, other] = ledgers as [Ledger, Ledger];
    const payers: Payer[] = [];
    for (let each = 0; each < PAYERS; each += 1) payers.push(await fundedPayer(one, FUNDS_E8));
    const requests = Array.from({ length: PAIRS }, (_, index) =>
      reserveRequest(payers[index % PAYERS] as Payer, 10n, { lifetimeMs: 0 }),
    );
    const race = async ({ accountId, keyId, rid, record }: ReserveRequest, index: number) => {
      // A connection sends all commands of a turn in one write, and Redis reads one write after the other. Each connection has the settlements of one
      // half and the expiries of the other. Both endings therefore occur, whichever write Redis reads first.
      const [settling, expiring] = index % 2 === 0 ? [one, other] : [other, one];
      const [settled, expired] = await Promise.all([
        settling.settle({ accountId, keyId, rid, record, costE8: COST_E8 }),
        expiring.expire({ accountId, keyId }, rid),
      ]);
      return `${settled.outcome} ${expired.outcome}`;
    };
    const endings = new Map<string, number>();
    for (let from = 0; from < PAIRS; from += AT_ONCE) {
      const some = requests.slice(from, from + AT_ONCE);
      await Promise.all(some.map((request) => one.reserve(request)));
      for (const ending of await Promise.all(some.map(race))) endings.set(ending, (endings.get(ending) ?? 0) + 1);
    }
    const settled = endings.get('settled not_due') ?? 0;
    const expired = endings.get('expired expired') ?? 0;
    assert.equal(settled + expired, PAIRS, JSON.stringify([...endings]));
    assert.ok(settled > 0 && expired > 0, JSON.stringify([...endings]));

    let postedE8 = 0n;
    for (const { accountId } of payers) {
      const account = await one.readAccount(accountId);
      assert.equal(account?.heldE8, 0n);
      postedE8 += account?.postedE8 ?? 0n;
    }
    assert.equal(postedE8, BigInt(PAYERS) * FUNDS_E8 - BigInt(settled) * COST_E8);

    await shipShards({ ledger: one, database, log: quiet }, ALL_SHARDS);
    const { rows } = await database.raw(
      `SELECT kind, count(*)::int AS entries, count(DISTINCT rid)::int AS reservations FROM ledger_entries
       WHERE kind <> 'credit' GROUP BY kind ORDER BY kind`,
    );
    assert.deepEqual(rows, [
      { kind: 'charge', entries: settled, reservations: settled },
      { kind: 'expire', entries: expired, reservations: expired },
    ]);
    const [both] = await database('ledger_entries').whereNot({ kind: 'credit' }).countDistinct({ all: 'rid' });
    assert.equal(Number(both?.['all']), PAIRS);
  });
});
