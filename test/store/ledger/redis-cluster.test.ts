import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { pino } from 'pino';
import { newId } from '../../../core/base/ids';
import type { Loop } from '../../../core/base/loop';
import { AllowanceLedger } from '../../../core/ledger/allowances/allowance-ledger';
import { startGuardian } from '../../../core/ledger/guardian';
import {
  type Ledger,
  LedgerUnavailable,
  type Payer,
  type ReleaseRequest,
  type ReserveRequest,
  type SettleRequest,
} from '../../../core/ledger/ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { startShipperThread } from '../../../core/ledger/outbox/shipper-thread';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { ALL_SHARDS, shardOf } from '../../../core/ledger/shard';
import { verify } from '../../../core/ledger/verify/verify';
import { openPostgres } from '../../../core/storage/database';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { findProgram } from '../../support/programs';
import type { TestRedis } from '../../support/redis';
import { startCluster, type TestCluster } from '../../support/redis-cluster';
import { rejection } from '../../support/rejection';
import { newDatabase } from '../../support/shared';
import { until } from '../../support/until';
import { assertIncludes, hashOf, keyRequest, ledgerOf, newPayer, reserveRequest, usageRecord } from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';

const OPERATING = join(__dirname, '../../../docs/operating.md');

/** The parts of an account that have left when a move stops halfway: outbox, account, key, reservations, deadlines, epoch. */
const HALVES = [['ob'], ['a'], ['k'], ['r'], ['exp'], ['meta'], ['a', 'k', 'r'], ['ob', 'r'], ['a', 'ob', 'exp']];

/** The worker script, which connects to the Cluster by itself. */
const SHIPPER = join(__dirname, '../../support/scripts/shipper-worker.cjs');

describe('the ledger in a Redis Cluster of three primaries', () => {
  let cluster: TestCluster;
  let databaseUrl: string;
  let database: Knex;
  let ledger: Ledger;
  let guardian: Loop | undefined;
  const payers: Payer[] = [];
  /** Whether nodes hold allowances for keys. */
  let isUsedMuch = false;

  before(async function () {
    this.timeout(60_000);
    cluster = await startCluster();
    const redis = connectRedis(cluster.url, quiet);
    await checkRedis(redis, 10_000);
    const inner = new RedisLedger({ redis });
    ledger = ledgerOf(new AllowanceLedger({ inner, log: quiet, isHot: () => isUsedMuch }), inner);
    databaseUrl = await newDatabase();
    database = openPostgres(databaseUrl, { log: quiet });
    guard();
    await until('the ledger is filled', () => ledger.isReady(), 40_000);
    for (let each = 0; each < 12; each += 1) payers.push(await fund(await payerOn(each % 3)));
  });
  after(async function () {
    this.timeout(60_000);
    await guardian?.stop();
    await ledger?.close();
    await database?.destroy();
    await cluster?.stop();
  });

  /** Starts a guardian and returns the reasons that it logs. */
  function guard(): readonly string[] {
    const reasons: string[] = [];
    const log = pino({ level: 'error' }, { write: (line: string) => reasons.push(line) });
    guardian = startGuardian({ ledger, database, log, everyMs: 100 });
    return reasons;
  }

  const thirdOf = async ({ accountId }: Payer) =>
    Math.floor(((await cluster.slotOf(accountPrefix(accountId))) * 3) / 16_384);

  const taken = new Set<number>();

  /** Makes an account in a slot of its own on this primary. */
  async function payerOn(primary: number): Promise<Payer> {
    for (;;) {
      const payer = newPayer();
      const slot = await cluster.slotOf(accountPrefix(payer.accountId));
      if (taken.has(slot) || (await thirdOf(payer)) !== primary) continue;
      taken.add(slot);
      return payer;
    }
  }

  async function fund(payer: Payer): Promise<Payer> {
    const [rid, amountE8] = [newId(), 1_000_000n];
    await insertPayer(database, payer);
    await insertCredit(database, payer.accountId, rid, amountE8);
    await atLast('a customer has money', async () => {
      await ledger.setAccount(payer.accountId, 'active');
      await ledger.setKey(keyRequest(payer));
      await ledger.credit({ accountId: payer.accountId, rid, amountE8 });
    });
    return payer;
  }

  /** Retries, because a busy machine or a reorganising Cluster may be late. */
  const atLast = (what: string, work: () => Promise<void>) => until(what, () => work().then(() => true), 40_000);

  const recordNow = (payer: Payer) => JSON.stringify(usageRecord(payer, { createdAt: new Date().toISOString() }));

  /** Repeats a settlement until it is answered, as the settler does. */
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
      40_000,
    );
  }

  /** Makes calls for all customers during an event in the Cluster; returns the settled amounts by account. */
  async function callWhile(happens: () => Promise<void>) {
    const settled = new Map(payers.map(({ accountId }) => [accountId, 0]));
    const shipper = startShipperThread({ redisUrl: cluster.url, databaseUrl, log: quiet, program: SHIPPER });
    let stopped = false;
    const outcomes = new Set<string>();
    isUsedMuch = true;
    const customer = async (payer: Payer, index: number) => {
      // Calls with an Idempotency-Key each need Redis. Allowances serve those of every other customer.
      const intents =
        index % 2 === 0 ? () => ({ intent: { key: newId(), body: 'body', requestId: 'req_1' } }) : () => ({});
      while (!stopped) {
        const request = reserveRequest(payer, 10n, { facts: recordNow(payer), ...intents() });
        const reserved = await ledger.reserve(request).catch((error) => {
          assert.ok(error instanceof LedgerUnavailable, String(error));
          return { outcome: 'unavailable' };
        });
        if (reserved.outcome === 'reserved') {
          const outcome = await settleAtLast({ ...payer, rid: request.rid, costE8: 3n, record: recordNow(payer) });
          outcomes.add(outcome);
          if (outcome === 'settled') settled.set(payer.accountId, (settled.get(payer.accountId) ?? 0) + 1);
          shipper.nudge(payer.accountId);
        }
        await new Promise((wake) => setTimeout(wake, 5));
      }
    };
    const working = payers.map(customer);
    try {
      await happens();
    } finally {
      stopped = true;
      isUsedMuch = false;
      await Promise.all(working);
      await shipper.stop();
    }
    return { settled, outcomes };
  }

  /** Reads the spent money of each customer, with retries for a late ledger. */
  const spent = () =>
    until(
      'the ledger says what was spent',
      () => Promise.all(payers.map(async (payer) => (await ledger.readKey(payer))?.spentE8 ?? 0n)),
      40_000,
    );
  const progress = (what: string, from: readonly bigint[]) =>
    until(what, async () => (await spent()).every((each, index) => each > (from[index] ?? 0n)), 40_000);

  /** Makes an account on the first primary with waiting entries and an open call, and moves half its slot to the second primary. */
  async function leaveInTheMiddle(kinds: readonly string[]) {
    const payer = await fund(await payerOn(0));
    const [prefix, requests] = [
      accountPrefix(payer.accountId),
      [1, 2, 3].map(() => reserveRequest(payer, 10n, { facts: recordNow(payer) })),
    ];
    const told = requests.slice(0, 2).map(({ rid, record }) => ({ ...payer, rid, costE8: 3n, record }));
    for (const request of requests)
      await atLast('it is held', async () => assert.equal((await ledger.reserve(request)).outcome, 'reserved'));
    for (const request of told) assert.equal(await settleAtLast(request), 'settled');
    const slot = await cluster.slotOf(prefix);
    const all = await heldBy(cluster.primaries[0], slot);
    const isMoved = (key: string) => kinds.includes(key.slice(prefix.length).split(':')[0] ?? '');
    await cluster.beginMove(slot, isMoved);
    const [moved, stayed] = [all.filter(isMoved), all.filter((key) => !isMoved(key))];
    return { payer, slot, told, open: requests[2] as ReserveRequest, moved, stayed };
  }

  /** Completes the moves with the commands of the operator's guide. */
  async function bringToTheirEnd(slots: readonly number[]) {
    const [node, importing] = [`127.0.0.1:${cluster.replica.port}`, String(cluster.primaries[1]?.port)];
    const owner = execFileSync(findProgram('redis-cli'), ['-p', String(cluster.replica.port), 'cluster', 'myid']);
    const places = { NODE: node, HOST: '127.0.0.1', PORT: importing, OWNER: owner.toString().trim() };
    const run = (command: string, more = {}) =>
      execFileSync('sh', ['-c', command], { env: { ...process.env, ...places, ...more }, stdio: 'ignore' });
    const told = readFileSync(OPERATING, 'utf8').match(/^redis-cli .*(?= #)/gm) ?? [];
    assert.equal(told.length, 3);
    const [check = '', setSlot = '', fix = ''] = told;
    assert.throws(() => run(check), 'it names what is wrong');
    for (const slot of slots) run(setSlot, { SLOT: String(slot) });
    // Nodes publish the new owner to each other within some seconds.
    await until(
      'the moves are brought to their end',
      () => {
        run(fix);
        run(check);
        return true;
      },
      40_000,
    );
  }

  const heldBy = async (server: TestRedis | undefined, slot: number) =>
    [...(await cluster.keysOf(server as TestRedis, slot))].sort();

  it('spreads accounts over all primaries and finds the API keys of each', async () => {
    assert.deepEqual(new Set(await Promise.all(payers.map(thirdOf))), new Set([0, 1, 2]));
    for (const payer of payers) assert.deepEqual(await ledger.findKey(hashOf(payer)), { outcome: 'found', ...payer });
  });

  it('continues while a slot is moved under load, and records every settlement once', async function () {
    this.timeout(180_000);
    const [payer] = payers;
    assert.ok(payer !== undefined);
    const before = await spent();
    const { settled, outcomes } = await callWhile(async () => {
      await progress('calls are served', before);
      await cluster.moveSlot(await cluster.slotOf(accountPrefix(payer.accountId)));
      await progress('calls are served after it', await spent());
    });
    assert.deepEqual(outcomes, new Set(['settled']));
    const reports = database('ledger_entries').whereNotNull('calls').first('rid');
    await until('reports of calls that were served from money in advance are in Postgres', () => reports);
    assert.ok((settled.get(payer.accountId) ?? 0) > 0);
    await assertWhole();
  });

  it('settles and releases without loss while a slot moves and its keys are still at the old node', async () => {
    const payer = await fund(await payerOn(0));
    const requests = [1, 2, 3].map(() => reserveRequest(payer, 10n, { facts: recordNow(payer) }));
    for (const request of requests) await atLast('it is held', async () => void (await ledger.reserve(request)));
    const slot = await cluster.slotOf(accountPrefix(payer.accountId));
    await cluster.beginMove(slot, () => false);
    const [first, second, third] = requests.map(({ rid, record }) => ({ ...payer, rid, record })) as [
      ReleaseRequest,
      ReleaseRequest,
      ReleaseRequest,
    ];
    assert.equal(await settleAtLast({ ...first, costE8: 3n }), 'settled');
    assert.equal((await ledger.release(second)).outcome, 'released');
    assert.equal(await settleAtLast({ ...third, costE8: 3n }), 'settled');
    await cluster.moveSlot(slot);
    await shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
    assert.equal((await readChain(database, payer.accountId)).length, 4);
    assertIncludes(await ledger.readAccount(payer.accountId), { postedE8: 999_994n, heldE8: 0n, seq: 4 });
  });

  it('loses nothing when a replica takes over in the middle of moves, and rejects calls until the moves are complete', async function () {
    this.timeout(120_000);
    const halves = [];
    for (const kinds of HALVES) halves.push(await leaveInTheMiddle(kinds));
    await guardian?.stop();
    await cluster.takeOver();
    for (const { payer, slot, moved, stayed } of halves) {
      assert.deepEqual(await heldBy(cluster.replica, slot), stayed, 'the new owner has what had stayed');
      assert.deepEqual(await heldBy(cluster.primaries[1], slot), moved, 'and the other half is where it went');
      const refused = await rejection(ledger.reserve(reserveRequest(payer, 1n)));
      assert.ok(refused instanceof LedgerUnavailable, String(refused));
    }
    const reasons = guard();
    const slots = halves.map(({ slot }) => slot);
    await until('the log names the slots', () =>
      slots.every((slot) => reasons.some((each) => each.includes(`${slot}`))),
    );
    assert.match(reasons.join(), /was interrupted/);
    assert.ok((await rejection(ledger.readAccount(halves[0]?.payer.accountId ?? ''))) instanceof LedgerUnavailable);

    await bringToTheirEnd(slots);
    await until('the ledger is open again', () => ledger.isReady(), 40_000);
    for (const { payer, told, open } of halves) {
      for (const request of told) assert.equal(await settleAtLast(request), 'settled');
      assert.equal(await settleAtLast({ ...payer, rid: open.rid, costE8: 3n, record: recordNow(payer) }), 'settled');
      assertIncludes(await ledger.readAccount(payer.accountId), { postedE8: 999_991n, heldE8: 0n, seq: 4 });
    }
    await shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
    for (const { payer } of halves) assert.equal((await readChain(database, payer.accountId)).length, 4);
    await assertWhole();
    await cluster.giveBack();
  });

  it('continues when a primary is killed and its replica takes over: no settlement occurs twice, all sums are equal', async function () {
    this.timeout(180_000);
    const before = await spent();
    await callWhile(async () => {
      await progress('calls are served', before);
      const [first] = cluster.primaries;
      process.kill(first?.pid ?? 0, 'SIGKILL');
      await progress('calls are served after it', await spent());
    });
    await assertWhole();
  });

  /** Asserts that everything agrees, except that calls which were open when the primary died may still hold money. */
  async function assertWhole() {
    const { violations } = await until('all can be looked at', () =>
      verify({ ledger, database }, { limit: 1_000, days: 1 }),
    );
    assert.deepEqual(violations, []);
    for (const payer of payers) {
      const [account, key] = await until('the ledger answers', () =>
        Promise.all([ledger.readAccount(payer.accountId), ledger.readKey(payer)]),
      );
      assert.equal(account?.postedE8, 1_000_000n - (key?.spentE8 ?? 0n), `shard ${shardOf(payer.accountId)}`);
    }
  }
});
