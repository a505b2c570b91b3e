import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { AllowanceLedger } from '../../../core/ledger/allowances/allowance-ledger';
import { LedgerUnavailable, type Payer } from '../../../core/ledger/ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { createSettler } from '../../../core/ledger/settler';
import { ALL_SHARDS, shardOf } from '../../../core/ledger/shard';
import { openSpool } from '../../../core/ledger/spool/spool';
import { openSpoolFolder } from '../../../core/ledger/spool/spool-folder';
import { judgeAccount } from '../../../core/ledger/verify/invariants';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { DATABASES, quiet, type TestDatabase, temporaryFolder } from '../../support/databases';
import { watchCommands } from '../../support/redis-monitor';
import { emptyRedis } from '../../support/shared';
import { until } from '../../support/until';
import {
  fundedPayer,
  instead,
  keyRequest,
  ledgerOf,
  reserveRequest,
  tagSettings,
  testTags,
  usageRecord,
} from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';
import { ledgerSuite } from './ledger-suite';

/** What a test has opened. The hook closes it even if the test fails. */
const closings: (() => unknown)[] = [];
const closeAll = async () => {
  for (const close of closings.splice(0).reverse()) await close();
};

const openStore = async (url: string): Promise<RedisLedger> => {
  const redis = connectRedis(url, quiet);
  closings.push(() => redis.disconnect());
  await checkRedis(redis);
  // Waits long for answers, because a busy machine must not fail the test.
  if ('commandTimeout' in redis.options) redis.options.commandTimeout = 30_000;
  return new RedisLedger({ redis, ...tagSettings(testTags) });
};

const hot = { isHot: () => true, log: quiet };

const openNode = async (url: string) => {
  const node = new AllowanceLedger({ inner: await openStore(url), ...hot });
  closings.push(node.stop);
  return node;
};

ledgerSuite('with allowances', async () => {
  const store = await openStore(await emptyRedis());
  const node = new AllowanceLedger({ inner: store, ...hot });
  return ledgerOf(node, store);
});

describe('allowances (money that nodes hold in advance for accounts)', () => {
  let url: string;
  let store: RedisLedger;

  beforeEach(async () => {
    url = await emptyRedis();
    store = await openStore(url);
    closings.push(() => store.close());
    await store.open();
  });
  afterEach(closeAll);

  const settle = (node: AllowanceLedger, payer: Payer, rid: string, costE8: bigint) =>
    node.settle({ ...payer, rid, costE8, record: JSON.stringify(usageRecord(payer)) });
  const call = async (node: AllowanceLedger, payer: Payer, costE8 = 10n) => {
    const request = reserveRequest(payer, 100n);
    const { outcome } = await node.reserve(request);
    if (outcome === 'reserved') await settle(node, payer, request.rid, costE8);
    return outcome;
  };
  const inspect = async ({ accountId, keyId }: Payer) => store.inspect(shardOf(accountId), [accountId], [keyId]);
  /** Returns the money of this key that the node holds, as Redis has it. */
  const allowanceOf = async (payer: Payer) => (await inspect(payer)).holds.map(({ amountE8 }) => amountE8);
  const warm = async (node: AllowanceLedger, payer: Payer) => {
    const before = (await allowanceOf(payer)).length;
    await call(node, payer);
    await until('the node has an allowance', async () => (await allowanceOf(payer)).length > before);
    // Waits until the node has received the answer of Redis.
    await until('calls are served from it', async () => {
      const request = reserveRequest(payer, 100n);
      await node.reserve(request);
      const isLocal = (await inspect(payer)).holds.every(({ rid }) => rid !== request.rid);
      await settle(node, payer, request.rid, 0n);
      return isLocal;
    });
  };
  const intact = async (payer: Payer) => {
    assert.deepEqual(judgeAccount(payer.accountId, await inspect(payer)), []);
  };

  it('pay the calls of a busy key without a request to Redis for each call', async () => {
    const node = await openNode(url);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const scripts: string[] = [];
    const watching = await watchCommands(url, ({ words: [name = ''], source }) => {
      if (source !== 'lua' && name.toLowerCase() === 'evalsha') scripts.push(name);
    });
    for (let each = 0; each < 500; each++) assert.equal(await call(node, payer), 'reserved');
    watching.stop();
    assert.ok(scripts.length < 50, `${scripts.length} scripts for 500 calls`);
    assert.equal((await node.readAccount(payer.accountId))?.postedE8, 1_000_000n - 5_000n - 10n);
    await intact(payer);
  });

  it('pay a call with a minimum amount in full, or leave the call to the ledger if they do not cover it', async () => {
    const node = await openNode(url);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const small = reserveRequest(payer, 100n, { minE8: 10n });
    assert.deepEqual(await node.reserve(small), { outcome: 'reserved', heldE8: 100n });
    assert.deepEqual(await node.reserve(small), { outcome: 'reserved', heldE8: 100n });
    const answer = await node.reserve(reserveRequest(payer, 2_000_000n, { minE8: 900n }));
    assert.ok(answer.outcome === 'reserved' && answer.heldE8 > 400_000n && answer.heldE8 < 500_000n);
    await intact(payer);
  });

  it('report only the holds of open calls as held money', async () => {
    const node = await openNode(url);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const request = reserveRequest(payer, 100n);
    await node.reserve(request);
    const account = await node.readAccount(payer.accountId);
    assert.deepEqual([account?.heldE8, account?.availableE8], [100n, 1_000_000n - 10n - 100n]);
    assert.equal((await node.readKey(payer))?.heldE8, 100n);
    assert.ok((await allowanceOf(payer)).some((amountE8) => amountE8 > 100n));
  });

  it('are recalled before a call is refused: of 200 simultaneous calls with money for 10, on three nodes, 10 are admitted', async () => {
    const nodes = [await openNode(url), await openNode(url), await openNode(url)];
    const payer = await fundedPayer(store, 1_000_000n);
    for (const node of nodes) await warm(node, payer);
    const { availableE8, postedE8 = 0n } = (await store.readAccount(payer.accountId)) ?? {};
    assert.ok((await allowanceOf(payer)).length >= 3);
    const adjusted = await store.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1_005n - postedE8 });
    assert.equal(adjusted.outcome, 'credited', `${availableE8} of ${postedE8}`);
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, async (_, each) => {
        const node = nodes[each % 3] as AllowanceLedger;
        return (await node.reserve(reserveRequest(payer, 100n))).outcome;
      }),
    );
    assert.equal(outcomes.filter((outcome) => outcome === 'reserved').length, 10);
    assert.equal(outcomes.filter((outcome) => outcome === 'insufficient_balance').length, 190);
    await intact(payer);
  });

  describe('and tags', () => {
    let rev = 0;
    const limitTag = (payer: Payer, tag: string, total: bigint) =>
      store.setScope({
        ...{ accountId: payer.accountId, scope: `g:${payer.accountId}:${tag}`, name: tag },
        ...{ rev: ++rev, limits: { total }, isLimited: true },
      });
    const tagged = (payer: Payer, tags: string) => reserveRequest(payer, 100n, { tags });
    const isLocal = async (payer: Payer, rid: string) => (await inspect(payer)).holds.every((hold) => hold.rid !== rid);

    it('pay no call with a limited tag, of which 200 at once on three nodes with money for 10 are admitted 10 times', async () => {
      const nodes = [await openNode(url), await openNode(url), await openNode(url)];
      const payer = await fundedPayer(store, 1_000_000n);
      await limitTag(payer, 'customer', 1_090n);
      for (const node of nodes) await warm(node, payer);
      const outcomes = await Promise.all(
        Array.from({ length: 200 }, async (_, each) => {
          const node = nodes[each % 3] as AllowanceLedger;
          return (await node.reserve(tagged(payer, 'agent=a customer=1'))).outcome;
        }),
      );
      assert.equal(outcomes.filter((outcome) => outcome === 'reserved').length, 10);
      assert.equal(outcomes.filter((outcome) => outcome === 'limit_exceeded').length, 190);
      // No allowance is recalled for the money of a tag.
      const free = tagged(payer, 'agent=customer project=1');
      assert.deepEqual(await nodes[0]?.reserve(free), { outcome: 'reserved', heldE8: 100n });
      assert.ok(await isLocal(payer, free.rid));
      await intact(payer);
    });

    it('pay no call with a tag once the answer says that the tag has a limit, and others again after a pause', async () => {
      const nodes = [await openNode(url), await openNode(url)];
      const payer = await fundedPayer(store, 1_000_000n);
      for (const node of nodes) await warm(node, payer);
      let isLimited = false;
      let callsSince = 0;
      const late: string[] = [];
      const stop = new AbortController();
      const calling = nodes.map(async (node) => {
        while (!stop.signal.aborted) {
          const wasLimited = isLimited;
          const request = tagged(payer, 'customer=1');
          const { outcome } = await node.reserve(request);
          if (wasLimited && outcome === 'reserved' && (await isLocal(payer, request.rid))) late.push(request.rid);
          if (outcome === 'reserved') await settle(node, payer, request.rid, 1n);
          if (wasLimited) callsSince += 1;
          await sleep(1);
        }
      });
      await limitTag(payer, 'customer', 100_000n);
      isLimited = true;
      await until('both nodes have made more calls', () => callsSince >= 20);
      stop.abort();
      await Promise.all(calling);
      assert.deepEqual(late, []);
      const redis = new Redis(url);
      await redis.hdel(`${accountPrefix(payer.accountId)}a:${payer.accountId}`, 'recall_until');
      redis.disconnect();
      const [node] = nodes as [AllowanceLedger, AllowanceLedger];
      await until('the node has an allowance again', async () => {
        const request = tagged(payer, 'project=1');
        await node.reserve(request);
        const isPaid = await isLocal(payer, request.rid);
        await settle(node, payer, request.rid, 0n);
        return isPaid;
      });
      const request = tagged(payer, 'customer=1');
      assert.equal((await node.reserve(request)).outcome, 'reserved');
      assert.ok(!(await isLocal(payer, request.rid)));
      await intact(payer);
    });
  });

  it('report the end of a call to the ledger before its caller continues, if their money was recalled', async () => {
    const [node, other] = [await openNode(url), await openNode(url)];
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const request = reserveRequest(payer, 100n);
    assert.equal((await node.reserve(request)).outcome, 'reserved');
    assert.equal((await other.reserve(reserveRequest(payer, 999_950n))).outcome, 'insufficient_balance');
    await settle(node, payer, request.rid, 30n);
    assert.equal((await store.readAccount(payer.accountId))?.postedE8, 1_000_000n - 10n - 30n);
    await intact(payer);
  });

  describe("stay at their nodes if the account's other money is exactly enough, or if only the key's limit is too low, for", () => {
    /** A hold of 100 and its key: the one with the allowance, or one of the same account that may spend 150 in all. */
    const held = async (payer: Payer, limitE8?: bigint) => {
      const own = limitE8 === undefined ? payer : { ...payer, keyId: newId() };
      if (limitE8 !== undefined) await store.setKey(keyRequest(own, { limitE8 }));
      const request = reserveRequest(own, 100n);
      assert.equal((await store.reserve(request)).outcome, 'reserved');
      return { own, request, end: { ...own, rid: request.rid, record: JSON.stringify(usageRecord(own)) } };
    };
    const withoutLimit = ({ limit: _, ...outcome }: { readonly outcome: string; readonly limit?: object }) => outcome;
    const cases: Record<string, (payer: Payer) => Promise<readonly [result: object, expected: object]>> = {
      'a hold of it': async (payer) => {
        const reserved = await store.reserve(reserveRequest(payer, 9_500n));
        return [reserved, { outcome: 'reserved', heldE8: 9_500n }];
      },
      'a hold of it where the limit of the key is reached': async (payer) => {
        const { own } = await held(payer, 150n);
        const refused = await store.reserve(reserveRequest(own, 9_400n));
        return [withoutLimit(refused), { outcome: 'limit_exceeded', availableE8: 50n }];
      },
      'a cost that is higher by it': async (payer) => {
        const { end } = await held(payer);
        const settled = await store.settle({ ...end, costE8: 9_500n });
        return [settled, { outcome: 'settled', chargedE8: 9_500n, shortfallE8: 0n }];
      },
      'a cost that is higher by it where the limit of the key is reached': async (payer) => {
        const { end } = await held(payer, 150n);
        const settled = await store.settle({ ...end, costE8: 9_500n });
        return [settled, { outcome: 'settled', chargedE8: 150n, shortfallE8: 9_350n }];
      },
      'a hold that grows by it': async (payer) => {
        const { end } = await held(payer);
        return [await store.renew({ ...end, lifetimeMs: undefined, amountE8: 9_500n }), { outcome: 'renewed' }];
      },
      'a hold that grows by it where the limit of the key is reached': async (payer) => {
        const { own, end } = await held(payer, 250n);
        const spent = reserveRequest(own, 100n);
        await store.reserve(spent);
        await store.settle({ ...own, rid: spent.rid, costE8: 100n, record: spent.record });
        const grown = await store.renew({ ...end, lifetimeMs: undefined, amountE8: 9_400n });
        return [withoutLimit(grown), { outcome: 'limit_exceeded', availableE8: 50n }];
      },
      'a hold that follows another and needs it': async (payer) => {
        const { end } = await held(payer);
        const rolled = await store.roll({ ...end, costE8: 100n, next: { rid: newId(), amountE8: 9_400n } });
        return [rolled, { outcome: 'rolled', chargedE8: 100n, shortfallE8: 0n }];
      },
      'a small hold that follows another': async (payer) => {
        const { end } = await held(payer);
        const rolled = await store.roll({ ...end, costE8: 50n, next: { rid: newId(), amountE8: 100n } });
        return [rolled, { outcome: 'rolled', chargedE8: 50n, shortfallE8: 0n }];
      },
      'a hold that follows another where the limit of the key is reached': async (payer) => {
        const { own, end } = await held(payer, 350n);
        const spent = reserveRequest(own, 100n);
        await store.reserve(spent);
        await store.settle({ ...own, rid: spent.rid, costE8: 100n, record: spent.record });
        const refused = await store.roll({ ...end, costE8: 50n, next: { rid: newId(), amountE8: 9_300n } });
        return [withoutLimit(refused), { outcome: 'limit_exceeded', availableE8: 200n }];
      },
    };
    for (const [name, run] of Object.entries(cases))
      it(name, async () => {
        const payer = await fundedPayer(store, 10_000n, 10_000n);
        const wanted = {
          generation: newId(),
          keyRev: 0,
          wantE8: 500n,
          besideE8: 0n,
          minE8: 1n,
          leaseMs: 3_600_000,
        };
        assert.equal((await store.grant({ ...payer, ...wanted })).outcome, 'granted');
        // Nobody would return this allowance: a recall would wait for it.
        const [result, expected] = await run(payer);
        assert.deepEqual(result, expected);
        assert.ok((await allowanceOf(payer)).includes(500n));
        await intact(payer);
      });
  });

  it('admit no call on any node once a revocation of the API key has been acknowledged', async () => {
    const nodes = [await openNode(url), await openNode(url), await openNode(url)];
    const payer = await fundedPayer(store, 1_000_000n);
    for (const node of nodes) await warm(node, payer);
    let isRevoked = false;
    let late = 0;
    let isDone = false;
    const load = nodes.map(async (node) => {
      while (!isDone) {
        const wasRevoked = isRevoked;
        const outcome = await call(node, payer);
        if (wasRevoked && outcome === 'reserved') late += 1;
        await sleep(1);
      }
    });
    await sleep(100);
    await store.setKey(keyRequest(payer, { status: 'revoked' }));
    isRevoked = true;
    await sleep(200);
    isDone = true;
    await Promise.all(load);
    assert.equal(late, 0);
    await intact(payer);
  });

  it('return to the account within one lease even if the clock of Redis was set back and their node is dead', async () => {
    const payer = await fundedPayer(store, 1_000_000n);
    const redis = new Redis(url);
    closings.push(() => redis.disconnect());
    const name = `${accountPrefix(payer.accountId)}a:${payer.accountId}`;
    const wanted = { ...payer, generation: newId(), keyRev: 0, wantE8: 100n, besideE8: 0n, minE8: 1n };
    assert.equal((await store.grant({ ...wanted, leaseMs: 3_600_000 })).outcome, 'granted');
    await redis.hset(name, 'lost_until', Date.now() + 3_600_000);
    const revoked = keyRequest(payer, { status: 'revoked' });
    await until('the revocation is answered', () => store.setKey(revoked).then(() => true), 20_000);
    await intact(payer);
  });

  it('are deleted some time after they were closed', async () => {
    const payer = await fundedPayer(store, 1_000_000n);
    const redis = new Redis(url);
    closings.push(() => redis.disconnect());
    const name = `${accountPrefix(payer.accountId)}a:${payer.accountId}`;
    const generation = newId();
    const wanted = { ...payer, generation, keyRev: 0, wantE8: 100n, besideE8: 0n, minE8: 1n, leaseMs: 1 };
    assert.equal((await store.grant(wanted)).outcome, 'granted');
    const ofAllowances = `a ${payer.accountId}`;
    const words = () => redis.hget(name, `al:${generation}`).then((text) => (text ?? '').split(' '));
    await until('it is closed, and known for a while', async () => {
      await store.expire(payer, ofAllowances);
      const [, state, , , , , untilMs] = await words();
      return state === 'closed' && Number(untilMs) > Date.now();
    });
    await store.expire(payer, ofAllowances);
    assert.equal(await redis.hexists(name, `al:${generation}`), 1);
    // Its time is over.
    await redis.hset(name, `al:${generation}`, (await words()).with(6, '1').join(' '));
    await store.expire(payer, ofAllowances);
    assert.equal(await redis.hexists(name, `al:${generation}`), 0);
    await intact(payer);
  });

  it('let a cost exceed its hold, up to the available money', async () => {
    const node = await openNode(url);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const first = reserveRequest(payer, 100n);
    await node.reserve(first);
    const { postedE8 = 0n } = (await node.readAccount(payer.accountId)) ?? {};
    assert.deepEqual(await settle(node, payer, first.rid, 2_000_000n), {
      outcome: 'settled',
      chargedE8: postedE8,
      shortfallE8: 2_000_000n - postedE8,
    });
    assert.equal((await node.readAccount(payer.accountId))?.postedE8, 0n);
    await intact(payer);
  });

  it('pay no call above the limit of an API key', async () => {
    const node = await openNode(url);
    const payer = await fundedPayer(store, 1_000_000n, 10_000n);
    await warm(node, payer);
    let admitted = 0;
    while ((await node.reserve(reserveRequest(payer, 100n))).outcome === 'reserved') admitted += 1;
    assert.equal(admitted, 99); // The key `warm` has spent 10.
    await intact(payer);
  });

  it('report a call once, even if answers of Redis are lost', async () => {
    let losing = 0;
    const inner = await openStore(url);
    const losesAnswers = instead(inner, {
      report: async (request) => {
        const answer = await inner.report(request);
        if (losing-- > 0) throw new LedgerUnavailable('the answer was lost');
        return answer;
      },
    });
    const node = new AllowanceLedger({ inner: losesAnswers, ...hot });
    closings.push(node.stop);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const { postedE8 = 0n } = (await node.readAccount(payer.accountId)) ?? {};
    losing = 3;
    for (let each = 0; each < 200; each++) await call(node, payer);
    await until('all is told', async () => (await store.readAccount(payer.accountId))?.postedE8 === postedE8 - 2_000n);
    await sleep(100);
    assert.equal((await store.readAccount(payer.accountId))?.postedE8, postedE8 - 2_000n);
    await intact(payer);
  });

  it('return to the account if their node is silent for longer than their lease', async () => {
    const inner = await openStore(url);
    let isSilent = false;
    const silent = instead(inner, {
      report: (request) => (isSilent ? Promise.reject(new LedgerUnavailable('away')) : inner.report(request)),
    });
    const node = new AllowanceLedger({ inner: silent, ...hot });
    closings.push(node.stop);
    const payer = await fundedPayer(store, 1_000_000n);
    await warm(node, payer);
    const open = reserveRequest(payer, 100n);
    await node.reserve(open);
    await node.readAccount(payer.accountId);
    isSilent = true;
    const rest = (await store.readAccount(payer.accountId))?.availableE8 ?? 0n;
    assert.equal((await store.reserve(reserveRequest(payer, rest))).outcome, 'reserved');
    // After the lease, the money of the open call stays held.
    assert.equal((await node.reserve(reserveRequest(payer, 100n))).outcome, 'insufficient_balance');
    isSilent = false;
    await settle(node, payer, open.rid, 100n);
    await until('it is told', async () => (await store.readAccount(payer.accountId))?.postedE8 === 1_000_000n - 110n);
    await intact(payer);
  });
});

describe('allowances (money that nodes hold in advance) that are kept on disk', () => {
  let test: TestDatabase;
  let database: Knex;
  let store: RedisLedger;
  let url: string;
  let folder: string;

  before(async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    database = test.database;
  });
  after(() => test.close());
  beforeEach(async () => {
    url = await emptyRedis();
    store = await openStore(url);
    closings.push(() => store.close());
    await store.open();
    const temporary = await temporaryFolder();
    closings.push(temporary.remove);
    folder = temporary.path;
  });
  afterEach(closeAll);

  /** Starts a process: its folder on disk and its ledger. It ends when its locks name a process that does not exist. */
  const start = async (inner: RedisLedger) => {
    let node: AllowanceLedger | undefined;
    const spool = openSpool({
      ledger: inner,
      allowances: { store: inner, has: (generation) => node?.has(generation) === true },
      database,
      shipper: { nudge: () => undefined },
      log: quiet,
      folder: await openSpoolFolder(folder),
      times: { spoolEveryMs: 20, resendAfterMs: 0 },
    });
    node = new AllowanceLedger({ inner, spool, ...hot });
    const settler = createSettler({ ledger: node, spool, shipper: { nudge: () => undefined }, log: quiet });
    return { node, spool, settler };
  };
  const fund = async (): Promise<Payer> => {
    const payer = await fundedPayer(store, 0n);
    const rid = newId();
    await insertPayer(database, payer);
    await insertCredit(database, payer.accountId, rid, 1_000_000n);
    await store.credit({ accountId: payer.accountId, rid, amountE8: 1_000_000n });
    return payer;
  };
  const ship = () => shipShards({ ledger: store, database, log: quiet }, ALL_SHARDS);

  it('are reported by the process that takes them over: ended calls are charged once, open calls cost nothing', async () => {
    let isDead = false;
    const inner = await openStore(url);
    closings.push(() => inner.close());
    const dying = instead(inner, {
      report: (request) => (isDead ? Promise.reject(new LedgerUnavailable('it is dead')) : inner.report(request)),
    });
    const payer = await fund();
    const { node, settler } = await start(dying);
    closings.push(() => node.stop());
    const begin = async () => {
      const request = reserveRequest(payer, 100n);
      assert.equal((await node.reserve(request)).outcome, 'reserved');
      return request.rid;
    };
    const end = (rid: string) =>
      settler.settle({ ...payer, rid, costE8: 10n, record: JSON.stringify(usageRecord(payer)) });
    for (let each = 0; each < 300; each++) await end(await begin());
    await node.readAccount(payer.accountId);
    const reported = 1_000_000n - ((await store.readAccount(payer.accountId))?.postedE8 ?? 0n);
    assert.equal(reported, 3_000n);
    isDead = true;
    const left = [await begin(), await begin()];
    for (let each = 0; each < 5; each++) await end(await begin());
    await sleep(100);
    const dead = JSON.stringify({ token: 'gone', pid: 2 ** 22 + 1, host: hostname() });
    for (const home of await readdir(folder)) await writeFile(join(folder, home, 'lock'), dead);
    const next = await start(await openStore(url));
    closings.push(() => next.spool.stop());
    closings.push(() => next.node.stop());
    await until(
      'it is charged',
      async () => (await store.readAccount(payer.accountId))?.postedE8 === 1_000_000n - 3_050n,
    );
    await sleep(100);
    await ship();
    const account = await store.readAccount(payer.accountId);
    assert.deepEqual([account?.postedE8, account?.heldE8], [1_000_000n - 3_050n, 0n]);
    const chain = await readChain(database, payer.accountId);
    assert.equal(BigInt(chain.at(-1)?.posted ?? 0), 1_000_000n - 3_050n);
    assert.equal(left.length, 2);
  });
});
