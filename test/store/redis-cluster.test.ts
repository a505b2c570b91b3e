import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { migrate, openPostgres } from '../../core/database';
import { newId } from '../../core/ids';
import { startDrainerThread } from '../../core/ledger/drainer-thread';
import { type Ledger, LedgerUnavailable, type Payer, type SettleRequest } from '../../core/ledger/ledger';
import { ensureReady } from '../../core/ledger/recovery';
import { accountPrefix } from '../../core/ledger/redis-keys';
import { openRedisLedger } from '../../core/ledger/redis-ledger';
import { shardOf } from '../../core/ledger/shard';
import { verify } from '../../core/ledger/verify';
import { checkRedis, connectRedis } from '../../core/redis';
import { quiet } from '../support/databases';
import { startCluster, type TestCluster } from '../support/redis-cluster';
import { newDatabase } from '../support/shared';
import { until } from '../support/until';
import { hashOf, keyRequest, newPayer, reserveRequest, usageRecord } from './ledger-fixture';
import { insertCredit, insertPayer } from './ledger-rows';

/** Finds its own way to the Cluster. */
const DRAINER = join(__dirname, '..', 'support', 'scripts', 'drainer-worker.cjs');

describe('the ledger in a Redis Cluster of three primaries', () => {
  let cluster: TestCluster;
  let databaseUrl: string;
  let database: Knex;
  let ledger: Ledger;
  const payers: Payer[] = [];

  before(async function () {
    this.timeout(60_000);
    cluster = await startCluster();
    const redis = connectRedis(cluster.url, quiet);
    await checkRedis(redis, 10_000);
    ledger = await openRedisLedger({ redis, log: quiet });
    databaseUrl = await newDatabase();
    database = openPostgres(databaseUrl, { log: quiet });
    await migrate(database);
    await ensureReady({ ledger, database, log: quiet });
    for (let each = 0; each < 12; each += 1) payers.push(await fund());
  });
  after(async function () {
    this.timeout(60_000);
    await ledger?.close();
    await database?.destroy();
    await cluster?.stop();
  });

  async function fund(): Promise<Payer> {
    const payer = newPayer();
    await insertPayer(database, payer);
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.setKey(keyRequest(payer));
    const rid = newId();
    await insertCredit(database, payer.accountId, rid, 1_000_000n);
    await ledger.credit({ accountId: payer.accountId, rid, amountE8: 1_000_000n });
    return payer;
  }

  const recordNow = (payer: Payer) => JSON.stringify(usageRecord(payer, { createdAt: new Date().toISOString() }));

  /** A settlement is repeated until it is answered, as the settler does. */
  async function settleAtLast(request: SettleRequest): Promise<string> {
    return until(
      'the settlement is answered',
      async () => {
        try {
          const { outcome } = await ledger.settle(request);
          return outcome === 'not_ready' ? undefined : outcome;
        } catch (error) {
          assert.ok(error instanceof LedgerUnavailable, String(error));
          return undefined;
        }
      },
      30_000,
    );
  }

  /** Calls of all customers while something happens to the Cluster; answers what was settled, by account. */
  async function callWhile(happens: () => Promise<void>) {
    const settled = new Map(payers.map(({ accountId }) => [accountId, 0]));
    const drainer = startDrainerThread({ redisUrl: cluster.url, databaseUrl, log: quiet, program: DRAINER });
    let stopped = false;
    const outcomes = new Set<string>();
    const customer = async (payer: Payer) => {
      while (!stopped) {
        const request = reserveRequest(payer, 10n, { record: recordNow(payer) });
        const reserved = await ledger.reserve(request).catch((error) => {
          assert.ok(error instanceof LedgerUnavailable, String(error));
          return { outcome: 'unavailable' };
        });
        if (reserved.outcome === 'reserved') {
          const outcome = await settleAtLast({ ...payer, rid: request.rid, costE8: 3n, record: recordNow(payer) });
          outcomes.add(outcome);
          if (outcome === 'settled') settled.set(payer.accountId, (settled.get(payer.accountId) ?? 0) + 1);
          drainer.nudge(payer.accountId);
        }
        await new Promise((wake) => setTimeout(wake, 5));
      }
    };
    const working = payers.map(customer);
    try {
      await happens();
    } finally {
      stopped = true;
      await Promise.all(working);
      await drainer.stop();
    }
    return { settled, outcomes };
  }

  const settledBy = async ({ accountId }: Payer) =>
    (await ledger.readKey(payers.find((each) => each.accountId === accountId) ?? newPayer()))?.spentE8;
  const progress = (what: string, from: readonly (bigint | undefined)[]) =>
    until(
      what,
      async () => {
        const now = await Promise.all(payers.map(settledBy)).catch(() => []);
        return now.length > 0 && now.every((each, index) => (each ?? 0n) > (from[index] ?? 0n));
      },
      30_000,
    );
  const spent = () => Promise.all(payers.map(settledBy));

  it('spreads accounts over all of them and finds keys', async () => {
    const slots = await Promise.all(payers.map(({ accountId }) => cluster.slotOf(accountPrefix(accountId))));
    assert.equal(new Set(slots.map((slot) => Math.floor((slot * 3) / 16_384))).size, 3);
    for (const payer of payers) assert.deepEqual(await ledger.findKey(hashOf(payer)), { outcome: 'found', ...payer });
  });

  it('goes on while a slot is moved under load: every settlement is there once', async function () {
    this.timeout(60_000);
    const [payer] = payers;
    assert.ok(payer !== undefined);
    const before = await spent();
    const { settled, outcomes } = await callWhile(async () => {
      await progress('calls are served', before);
      await cluster.moveSlot(await cluster.slotOf(accountPrefix(payer.accountId)));
      await progress('calls are served after it', await spent());
    });
    assert.deepEqual(outcomes, new Set(['settled']));
    assert.ok((settled.get(payer.accountId) ?? 0) > 0);
    await assertWhole();
  });

  it('goes on when a primary is killed and its replica takes its place: no settlement twice, all sums equal', async function () {
    this.timeout(90_000);
    const before = await spent();
    await callWhile(async () => {
      await progress('calls are served', before);
      const [first] = cluster.primaries;
      process.kill(first?.pid ?? 0, 'SIGKILL');
      await until(
        'the ledger answers again',
        async () => {
          await ensureReady({ ledger, database, log: quiet }).catch(() => undefined);
          return ledger.isReady().catch(() => false);
        },
        40_000,
      );
      await progress('calls are served after it', await spent());
    });
    await assertWhole();
  });

  /** Calls that were open when the primary died may still hold money; everything else is compared. */
  async function assertWhole() {
    const { violations } = await verify({ ledger, database }, { limit: 1_000, days: 1 });
    assert.deepEqual(violations, []);
    for (const payer of payers) {
      const account = await ledger.readAccount(payer.accountId);
      const key = await ledger.readKey(payer);
      assert.equal(account?.postedE8, 1_000_000n - (key?.spentE8 ?? 0n), `shard ${shardOf(payer.accountId)}`);
    }
  }
});
