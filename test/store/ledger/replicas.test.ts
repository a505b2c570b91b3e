import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { metrics } from '../../../core/base/metrics';
import { type Ledger, LedgerUnavailable, type Payer } from '../../../core/ledger/ledger';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import type { ReplicaPolicy } from '../../../core/ledger/redis/replicas';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { type Link, linkTo } from '../../support/link';
import { startRedis, type TestRedis } from '../../support/redis';
import { settlesWithin, until } from '../../support/until';
import { fundedPayer, holding, openRedisLedger, reserveRequest } from './ledger-fixture';

/** Waits long for a late replica on a busy machine; a test that expects a refusal waits less. */
const POLICY: ReplicaPolicy = { waitReplicas: 1, waitTimeoutMs: 5_000, onTooFew: 'refuse' };

describe('a ledger that waits for a replica', function () {
  this.timeout(30_000);
  const closings: (() => unknown)[] = [];
  const ledgers: Ledger[] = [];
  let master: TestRedis;
  let replica: TestRedis;
  let link: Link;
  let watching: Redis;
  let copy: Redis;

  before(async () => {
    master = await startRedis(['--repl-diskless-sync-delay', '0']);
    closings.push(() => master.stop());
    link = await linkTo(master.port);
    closings.push(() => link.stop());
    replica = await startRedis(['--replicaof', '127.0.0.1', String(link.port)]);
    closings.push(() => replica.stop());
    watching = new Redis(master.url);
    closings.push(() => watching.disconnect());
    copy = new Redis(replica.url);
    closings.push(() => copy.disconnect());
    await isInStep();
  });
  afterEach(async () => {
    link.mend();
    for (const ledger of ledgers.splice(0)) await ledger.close();
  });
  after(async () => {
    for (const close of closings.reverse()) await close();
  });

  /** Returns whether the replica has the writes of this connection, because WAIT counts no others. */
  const isInStep = async () => {
    await watching.incr('step');
    await until('the replica is in step', async () => (await watching.call('WAIT', 1, 100)) === 1, 20_000);
  };
  const open = async (policy: Partial<ReplicaPolicy> = {}) => {
    await isInStep();
    const redis = connectRedis(master.url, quiet);
    await checkRedis(redis);
    const ledger = await openRedisLedger(redis, { ...POLICY, ...policy });
    ledgers.push(ledger);
    await ledger.open();
    return ledger;
  };
  const stateOn = (redis: Redis, { accountId }: Payer, rid: string) =>
    redis.hget(`${accountPrefix(accountId)}r:${rid}`, 'state');
  const tooFew = async () =>
    (await metrics.getSingleMetric('tollgate_ledger_too_few_replicas_total')?.get())?.values[0]?.value ?? 0;
  const waits = async () => Number(/cmdstat_wait:calls=(\d+)/.exec(await watching.info('commandstats'))?.[1] ?? 0);

  it('acknowledges a write once the replica has it, and many calls share one wait command', async () => {
    const ledger = await open();
    const payer = await fundedPayer(ledger, 100_000n);
    const before = await waits();
    const caller = async () => {
      for (let call = 0; call < 10; call += 1) {
        const request = reserveRequest(payer, 10n);
        assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8: 10n });
        assert.equal(await stateOn(copy, payer, request.rid), 'open');
        await ledger.settle({ ...request, costE8: 3n });
        assert.equal(await stateOn(copy, payer, request.rid), 'settled');
      }
    };
    await Promise.all(Array.from({ length: 40 }, caller));
    const waited = (await waits()) - before;
    // Some versions of Redis wait even without a write, others only after one.
    assert.ok(Number(await copy.get('replicated')) > 0);
    assert.ok(waited > 0 && waited < 400, `${waited} waits for 800 operations`);
  });

  it('refuses within 300 ms while the replica is unreachable, and the replica has every acknowledged write', async () => {
    const payer = await fundedPayer(await open(), 100_000n);
    const ledger = await open({ waitTimeoutMs: 100 });
    const told = await callUntilCut(ledger, payer);
    const late = reserveRequest(payer, 10n);
    const refused = assert.rejects(ledger.reserve(late), LedgerUnavailable);
    assert.ok(await settlesWithin(300, refused));
    await refused;
    assert.ok(told.length > 0);
    for (const rid of told) assert.equal(await stateOn(copy, payer, rid), 'settled');
    link.mend();
    await isInStep();
    const taken = await until('it is taken', () => ledger.reserve(late).catch(() => undefined));
    assert.deepEqual(taken, { outcome: 'reserved', heldE8: 10n });
    assert.equal(await stateOn(copy, payer, late.rid), 'open');
  });

  it('continues under the policy `warn` and counts writes that the replica lacks; a promoted replica then lacks them', async () => {
    const payer = await fundedPayer(await open(), 100_000n);
    const ledger = await open({ onTooFew: 'warn', waitTimeoutMs: 20 });
    const before = await tooFew();
    link.cut();
    const request = reserveRequest(payer, 10n);
    assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8: 10n });
    assert.equal(await stateOn(copy, payer, request.rid), null);
    assert.equal(await tooFew(), before + 1);
  });

  it('waits for the replica even if Redis is full, and accepts settles and releases', async () => {
    const ledger = await open();
    const { payer, request } = await holding(ledger, 100n, 10n);
    await watching.config('SET', 'maxmemory', '1');
    try {
      assert.deepEqual(await ledger.settle({ ...request, costE8: 3n }), {
        outcome: 'settled',
        chargedE8: 3n,
        shortfallE8: 0n,
      });
      assert.equal(await stateOn(copy, payer, request.rid), 'settled');
    } finally {
      await watching.config('SET', 'maxmemory', '0');
    }
  });

  it('sends nothing to a replaced master, and reconnects a connection that is still open to that master', async () => {
    const way = await linkTo(master.port);
    closings.push(() => way.stop());
    const redis = connectRedis(`redis://127.0.0.1:${way.port}`, quiet);
    await checkRedis(redis);
    const ledger = await openRedisLedger(redis);
    ledgers.push(ledger);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    await isInStep();
    await copy.call('REPLICAOF', 'NO', 'ONE');
    way.turnTo(replica.port);
    const list = String(await watching.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    const [, background = ''] = /.*\bid=(\d+) /s.exec(list) ?? []; // The newest connection.
    await watching.call('CLIENT', 'KILL', 'ID', background);
    await until('it is seen that there is another', async () => !(await ledger.isReady().catch(() => true)));
    await ledger.open();
    const request = reserveRequest(payer, 10n);
    const taken = await until('it is taken', () => ledger.reserve(request).catch(() => undefined));
    assert.deepEqual(taken, { outcome: 'reserved', heldE8: 10n });
    assert.equal(await stateOn(copy, payer, request.rid), 'open');
    assert.equal(await stateOn(watching, payer, request.rid), null);
  });

  /**
   * Makes calls until the link is cut; returns the reservations with an acknowledged settlement. A replica that is late before the cut is ignored.
   */
  async function callUntilCut(ledger: Ledger, payer: Payer): Promise<readonly string[]> {
    const told: string[] = [];
    let isCut = false;
    const caller = async () => {
      for (;;) {
        const request = reserveRequest(payer, 10n);
        if (told.length > 200) {
          link.cut();
          isCut = true;
        }
        try {
          await ledger.reserve(request);
          await ledger.settle({ ...request, costE8: 1n });
          told.push(request.rid);
        } catch (error) {
          assert.ok(error instanceof LedgerUnavailable);
          if (isCut) return;
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    return told;
  }
});
