import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { newId } from '../../../core/ids';
import type { Intent, Ledger } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import type { Payer } from '../../../core/ledger/payer';
import { openRedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { shardOf } from '../../../core/ledger/shard';
import { MAX_AMOUNT_E8 } from '../../../core/money';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { emptyRedis } from '../../support/shared';
import { hashOf, settingsOf } from './ledger-fixture';
import { dumpMemory, dumpRedis } from './redis-dump';

/** Few names, so that commands meet, and one shard, for there an id that is used twice is noticed. */
const FIRST = newId();
const ACCOUNTS = [FIRST, newIdInShardOf(FIRST)] as const;
const PAYERS: readonly Payer[] = [
  { accountId: ACCOUNTS[0], keyId: newId() },
  { accountId: ACCOUNTS[0], keyId: newId() },
  { accountId: ACCOUNTS[1], keyId: newId() },
];
const RIDS = Array.from({ length: 6 }, newId);
const CREDIT_IDS = Array.from({ length: 10 }, newId);
const FUNDS = 1_000n;

type Command = { readonly name: string; run(ledger: Ledger): Promise<unknown> };

/** Few keys and bodies, so that repetitions meet; hashes in production. */
const anyIntent = fc.option(
  fc.record({ key: fc.constantFrom('key-1', 'key-2'), body: fc.constantFrom('body-1', 'body-1', 'body-2') }),
  { nil: undefined },
);
const requestOf = (id: string) => `req_${id}`;
/** The record of a call with this key, as a late settle and a recovery read it. */
const recordOf = (id: string, intent: Intent | undefined) =>
  JSON.stringify({ requestId: requestOf(id), ...(intent === undefined ? {} : { routing: { intent } }) });

/** At the edges of the hold, the limit, the funds and the range, one below and one above. */
const amount = fc.constantFrom(
  0n,
  1n,
  99n,
  100n,
  101n,
  249n,
  250n,
  251n,
  499n,
  500n,
  501n,
  FUNDS - 1n,
  FUNDS,
  FUNDS + 1n,
  MAX_AMOUNT_E8 - FUNDS,
  MAX_AMOUNT_E8 - 1n,
  MAX_AMOUNT_E8,
);
const payer = fc.constantFrom(...PAYERS);
const rid = fc.constantFrom(...RIDS);
/** An id and who shows it: nearly always the one it belongs to. */
const holder = fc.tuple(fc.nat(RIDS.length - 1), fc.nat(15), payer).map(([index, chance, stray]) => ({
  rid: RIDS[index] ?? '',
  payer: chance === 0 ? stray : (PAYERS[index % PAYERS.length] ?? stray),
}));
const held = <T extends object>(parts: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.tuple(holder, fc.record(parts) as fc.Arbitrary<T>).map(([who, rest]) => ({ ...who, ...rest }));
const anyRev = fc.constantFrom(0, 1, 2);

const show = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each));
const command = <T extends object>(
  name: string,
  request: fc.Arbitrary<T>,
  run: (ledger: Ledger, request: T) => Promise<unknown>,
): fc.Arbitrary<Command> =>
  request.map((given) => ({ name: `${name} ${show(given)}`, run: (ledger) => run(ledger, given) }));

const reserve = command(
  'reserve',
  held({
    amountE8: amount,
    keyRev: anyRev,
    lifetimeMs: fc.constantFrom(undefined, 0, 3_600_000),
    tokens: fc.constantFrom(0, 1, 2, 3, 4, 9),
    intent: anyIntent,
  }),
  (ledger, { payer: who, intent, ...request }) =>
    ledger.reserve({
      ...who,
      ...request,
      record: `{"of":"${request.rid}"}`,
      ...(intent && { intent: { ...intent, requestId: requestOf(request.rid) } }),
    }),
);
const settle = command(
  'settle',
  held({
    costE8: amount,
    tokens: fc.constantFrom(undefined, 0, 1, 4, 9),
    isLate: fc.boolean(),
    intent: anyIntent,
  }),
  (ledger, { payer: who, intent, ...request }) =>
    ledger.settle({ ...who, ...request, record: recordOf(request.rid, intent) }),
);
const release = command('release', holder, (ledger, { payer: who, rid: id }) =>
  ledger.release({ ...who, rid: id, record: '' }),
);
const renew = command(
  'renew',
  held({ lifetimeMs: fc.constantFrom(undefined, 0, 3_600_000), amountE8: amount }),
  (ledger, { payer: who, ...request }) => ledger.renew({ ...who, ...request }),
);
/** The next hold's id belongs to the same payer: ids and payers repeat every three. */
const roll = command(
  'roll',
  held({ costE8: amount, amountE8: amount }),
  (ledger, { payer: who, rid: id, costE8, amountE8 }) =>
    ledger.roll({ ...who, rid: id, costE8, record: '', next: { rid: nextOf(id), amountE8 } }),
);
const expire = command('expire', holder, (ledger, { payer: who, rid: id }) => ledger.expire(who, id));
const credit = command(
  'credit',
  fc.record({
    accountId: fc.constantFrom(...ACCOUNTS),
    rid: fc.constantFrom(...CREDIT_IDS, ...RIDS),
    sign: fc.constantFrom(1n, -1n),
    amountE8: amount,
  }),
  (ledger, { sign, amountE8, ...request }) => ledger.credit({ ...request, amountE8: sign * amountE8 }),
);
const setAccount = command(
  'setAccount',
  fc.record({ accountId: fc.constantFrom(...ACCOUNTS), status: fc.constantFrom('active', 'active', 'frozen') }),
  (ledger, { accountId, status }) => ledger.setAccount(accountId, status as 'active' | 'frozen'),
);
const limit = fc.constantFrom(undefined, undefined, 0n, 100n, 250n, 500n, FUNDS);
/** So few in a minute that what comes back meanwhile, and the rounding of it, make no difference. */
const anyLimits = fc.record({
  limitE8: limit,
  dailyLimitE8: limit,
  monthlyLimitE8: limit,
  callsPerMinute: fc.constantFrom(undefined, undefined, 1, 2, 3),
  tokensPerMinute: fc.constantFrom(undefined, undefined, 1, 3, 4),
});
const setKey = command(
  'setKey',
  fc.record({
    payer,
    status: fc.constantFrom('active', 'active', 'active', 'revoked'),
    limits: anyLimits,
    rev: anyRev,
  }),
  (ledger, { payer: who, status, limits, rev }) =>
    ledger.setKey({
      ...who,
      hash: hashOf(who),
      status: status as 'active' | 'revoked',
      ...limits,
      settings: settingsOf({ rev, name: `rev ${rev}` }),
    }),
);
const restore = command(
  'restore',
  fc.record({
    payer,
    seq: fc.nat(12),
    postedE8: fc.constantFrom(0n, 500n, FUNDS),
    limits: anyLimits,
    closedRid: rid,
    heldE8: amount,
    rev: anyRev,
    intent: anyIntent,
  }),
  (ledger, { payer: who, seq, postedE8, limits, closedRid, heldE8, rev, intent }) =>
    ledger.restore([
      {
        accountId: who.accountId,
        status: 'active',
        postedE8,
        seq,
        keys: PAYERS.filter(({ accountId }) => accountId === who.accountId).map((each) => ({
          ...each,
          ...limits,
          hash: hashOf(each),
          status: 'active',
          settings: settingsOf({ rev }),
          spentE8: 100n,
        })),
        closed: [
          {
            rid: `${closedRid.slice(0, -4)}ffff`,
            kind: 'charge',
            keyId: who.keyId,
            amountE8: -5n,
            shortfallE8: 1n,
            ...(intent && { intent: { ...intent, requestId: requestOf(closedRid) } }),
          },
        ],
        open: [{ ...who, rid: RIDS[PAYERS.indexOf(who)] ?? '', amountE8: heldE8 }],
      },
    ]),
);
const trim = command('trim', fc.record({ payer, count: fc.nat(3) }), async (ledger, { payer: who, count }) => {
  const shard = shardOf(who.accountId);
  const head = (await ledger.readOutbox([shard], 100)).get(shard) ?? [];
  await ledger.trimOutbox(shard, head.slice(0, count));
});

const commands = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: reserve },
    { weight: 8, arbitrary: settle },
    ...[release, renew, roll, expire, credit].map((arbitrary) => ({ weight: 3, arbitrary })),
    ...[setAccount, setKey, restore, trim].map((arbitrary) => ({ weight: 1, arbitrary })),
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);

/** How long to wait depends on the clock: to the second both say the same, or nearly so. */
function withoutTime(value: unknown): unknown {
  const answer = value as { outcome?: string } | undefined;
  return answer?.outcome === 'rate_limited' ? { outcome: 'rate_limited' } : value;
}

function nextOf(id: string): string {
  return RIDS[(RIDS.indexOf(id) + PAYERS.length) % RIDS.length] ?? '';
}

function newIdInShardOf(accountId: string): string {
  for (;;) {
    const id = newId();
    if (shardOf(id) === shardOf(accountId)) return id;
  }
}

const NOW = 1_700_000_000_000;

describe('the ledger in Redis and the reference model', () => {
  it('answer the same and know the same after every one of some thousand random commands', async function () {
    this.timeout(120_000);
    const redis = connectRedis(await emptyRedis(), quiet);
    await checkRedis(redis);
    // What is compared is what it answers, however busy the machine is.
    assert.ok(redis instanceof Redis);
    redis.options.commandTimeout = 30_000;
    const ledger = await openRedisLedger({ redis, log: quiet });
    let count = 0;
    const outcomes = new Map<string, number>();

    const prepare = async (each: Ledger) => {
      await each.open();
      for (const accountId of ACCOUNTS) {
        await each.setAccount(accountId, 'active');
        await each.credit({ accountId, rid: `${accountId.slice(0, -4)}eeee`, amountE8: FUNDS });
      }
      for (const [index, who] of PAYERS.entries()) {
        const limits = { limitE8: index === 1 ? 250n : undefined, ...(index === 2 ? { callsPerMinute: 1 } : {}) };
        await each.setKey({
          ...who,
          hash: hashOf(who),
          status: 'active',
          ...limits,
          settings: settingsOf({ name: '' }),
        });
      }
    };
    const answer = (each: Ledger, { run }: Command) =>
      run(each).then(
        (value) => withoutTime(value),
        (error: Error) => ({ outcome: error.name }),
      );

    const property = fc.asyncProperty(commands, async (list) => {
      await redis.flushdb();
      const model = new MemoryLedger({ now: () => NOW });
      await prepare(ledger);
      await prepare(model);
      for (const each of list) {
        const [real, expected] = [await answer(ledger, each), await answer(model, each)];
        assert.deepEqual(real, expected, each.name);
        assert.deepEqual(await dumpRedis(redis), dumpMemory(model.snapshot(), NOW), each.name);
        count += 1;
        const word = `${each.name.split(' ')[0]}: ${(real as { outcome?: string } | undefined)?.outcome ?? 'done'}`;
        outcomes.set(word, (outcomes.get(word) ?? 0) + 1);
      }
    });
    try {
      await fc.assert(property, { numRuns: 150, endOnFailure: false, interruptAfterTimeLimit: 60_000 });
    } finally {
      await ledger.close();
    }
    assert.ok(count >= 2_000, `only ${count} commands were run`);
    const usual = [
      'reserve: reserved',
      'reserve: insufficient_balance',
      'reserve: key_limit_exceeded',
      'settle: settled',
    ];
    for (const word of [
      ...usual,
      'expire: expired',
      'release: released',
      'reserve: closed_before',
      'roll: rolled',
      'renew: insufficient_balance',
      'reserve: rate_limited',
      'reserve: intent_conflict',
      'reserve: intent_open',
      'reserve: intent_charged',
      'credit: above_maximum',
    ]) {
      assert.ok((outcomes.get(word) ?? 0) > 0, `${word} never happened: ${show([...outcomes])}`);
    }
  });
});
