import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { newId } from '../../../core/base/ids';
import { MAX_AMOUNT_E8 } from '../../../core/base/money';
import type { AllowanceStore } from '../../../core/ledger/allowances/allowance-store';
import { writeCalls } from '../../../core/ledger/allowances/reported-calls';
import { smallest } from '../../../core/ledger/amount';
import type { Intent, Ledger, Payer } from '../../../core/ledger/ledger';
import type { TagSettings } from '../../../core/ledger/memory-tags';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { shardOf } from '../../../core/ledger/shard';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { ModelLedger } from '../../support/model-ledger';
import { emptyRedis } from '../../support/shared';
import { hashOf, settingsOf, spentInAll } from './ledger-fixture';
import { dumpMemory, dumpRedis } from './redis-dump';

/** Few names, so that commands collide, and one shard, because only there a reused id is noticed. */
const FIRST = newId();
const ACCOUNTS = [FIRST, newIdInShardOf(FIRST)] as const;
const PAYERS: readonly Payer[] = [
  { accountId: ACCOUNTS[0], keyId: newId() },
  { accountId: ACCOUNTS[0], keyId: newId() },
  { accountId: ACCOUNTS[1], keyId: newId() },
];
const RIDS = Array.from({ length: 6 }, newId);
/** Teams and a member of the first account, to which its keys may belong. */
const [TEAM, OTHER_TEAM, MEMBER] = [newId(), newId(), newId()];
const SCOPES = [`a:${FIRST}`, `t:${TEAM}`, `t:${OTHER_TEAM}`, `m:${MEMBER}`];
/** Names and values of tags. The last call has three; with a limit on each that is one too many. */
const TAG_NAMES = ['customer', 'project', 'agent'] as const;
const TAGS_OF_CALLS = [
  'customer=1',
  'customer=2',
  'customer=1 project=a',
  'agent=x customer=2',
  'agent=x customer=1 project=a',
];
/** What Postgres has of each value. It is always the same, so that both ledgers read the same. */
const TAGS: TagSettings = {
  ...{ idleMs: 0, most: 2 },
  readTags: async (scopes) =>
    scopes.map((scope) => ({
      ...{ scope, rev: 1, limits: scope.endsWith('customer=2') ? { total: 400n } : {} },
      spending: spentInAll(scope.endsWith('x') ? 0n : 50n),
    })),
};
const CREDIT_IDS = Array.from({ length: 10 }, newId);
const FUNDS = 1_000n;

/** Two allowances for each of the first two payers, as of two nodes. */
const GENERATIONS = PAYERS.slice(0, 2).flatMap(() => [newId(), newId()]);

type Store = Ledger & AllowanceStore & { age(ms: number): Promise<void> | void };
type Command = { readonly name: string; run(ledger: Store): Promise<unknown> };

/** Few keys and bodies, so that repetitions occur. In production both are hashes. */
const anyIntent = fc.option(
  fc.record({ key: fc.constantFrom('key-1', 'key-2'), body: fc.constantFrom('body-1', 'body-1', 'body-2') }),
  { nil: undefined },
);
const requestOf = (id: string) => `req_${id}`;
/** Makes the record of a call with this key, as a late settle and a recovery read it. */
const recordOf = (id: string, intent: Intent | undefined) =>
  JSON.stringify({ requestId: requestOf(id), ...(intent === undefined ? {} : { routing: { intent } }) });

/** Amounts at the bounds of the hold, the limit, the balance and the range, and one below and above. */
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
/** An id and the payer that uses it: nearly always the one it belongs to. */
const holder = fc.tuple(fc.nat(RIDS.length - 1), fc.nat(15), payer).map(([index, chance, stray]) => ({
  rid: RIDS[index] ?? '',
  payer: chance === 0 ? stray : (PAYERS[index % PAYERS.length] ?? stray),
}));
const held = <T extends object>(parts: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.tuple(holder, fc.record(parts) as fc.Arbitrary<T>).map(([who, rest]) => ({ ...who, ...rest }));
const anyRev = fc.constantFrom(0, 1, 2);

/** Converts to the form in which a failure is printed: amounts are texts. */
const plain = (value: unknown): unknown => JSON.parse(show(value ?? null));
const show = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each));
const command = <T extends object>(
  name: string,
  request: fc.Arbitrary<T>,
  run: (ledger: Store, request: T) => Promise<unknown>,
): fc.Arbitrary<Command> =>
  request.map((given) => ({ name: `${name} ${show(given)}`, run: (ledger) => run(ledger, given) }));

const reserve = command(
  'reserve',
  held({
    amountE8: amount,
    minE8: fc.option(amount, { nil: undefined }),
    keyRev: anyRev,
    lifetimeMs: fc.constantFrom(undefined, 0, 3_600_000),
    tokens: fc.constantFrom(0, 1, 2, 3, 4, 9),
    intent: anyIntent,
    tags: fc.constantFrom(undefined, ...TAGS_OF_CALLS),
  }),
  (ledger, { payer: who, intent, minE8, ...request }) =>
    ledger.reserve({
      ...who,
      ...request,
      minE8: minE8 && smallest(minE8, request.amountE8),
      facts: `{"of":"${request.rid}"}`,
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
/** Rolls to a hold that belongs to the same payer: ids and payers repeat every three. */
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
/** Limits of few calls in a minute, so that refills during the test, and their rounding, make no difference. */
const anyLimits = fc.record({
  limitE8: limit,
  dailyLimitE8: limit,
  weeklyLimitE8: limit,
  monthlyLimitE8: limit,
  callsPerMinute: fc.constantFrom(undefined, undefined, 1, 2, 3),
  tokensPerMinute: fc.constantFrom(undefined, undefined, 1, 3, 4),
});
const anyScopes = fc.constantFrom(
  {},
  { teamId: TEAM },
  { teamId: TEAM },
  { memberId: MEMBER },
  { teamId: TEAM, memberId: MEMBER },
  { teamId: OTHER_TEAM, memberId: MEMBER },
);
const setKey = command(
  'setKey',
  fc.record({
    payer,
    status: fc.constantFrom('active', 'active', 'active', 'revoked'),
    limits: anyLimits,
    scopes: anyScopes,
    rev: anyRev,
  }),
  (ledger, { payer: who, status, limits, scopes, rev }) =>
    ledger.setKey({
      ...who,
      hash: hashOf(who),
      status: status as 'active' | 'revoked',
      ...limits,
      settings: settingsOf({ rev, name: `rev ${rev}`, ...(who.accountId === FIRST && scopes) }),
    }),
);
const setScope = command(
  'setScope',
  fc.record({
    scope: fc.constantFrom(...SCOPES),
    rev: anyRev,
    limits: fc.record({ total: limit, day: limit, week: limit, month: limit }),
  }),
  (ledger, request) => ledger.setScope({ accountId: FIRST, name: `rev ${request.rev}`, ...request }),
);
const setTag = command(
  'setTag',
  fc.record({
    accountId: fc.constantFrom(FIRST, ...ACCOUNTS),
    tag: fc.constantFrom(...TAG_NAMES, 'customer=1', 'customer=2'),
    rev: anyRev,
    limits: fc.record({ total: limit, day: limit, week: limit, month: limit }),
    isLimited: fc.constantFrom(true, true, true, false),
  }),
  (ledger, { accountId, tag, ...request }) =>
    ledger.setScope({ accountId, scope: `g:${accountId}:${tag}`, name: tag, ...request }),
);
/** Lets the idle tags of an account leave, after Postgres has received all entries. */
const leave = command(
  'leave',
  fc.record({ accountId: fc.constantFrom(FIRST, ...ACCOUNTS) }),
  async (ledger, { accountId }) => {
    const shard = shardOf(accountId);
    await ledger.trimOutbox(shard, (await ledger.readOutbox([shard], 1_000)).get(shard) ?? []);
    return ledger.expire({ accountId, keyId: '' }, `g ${accountId}`);
  },
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
  (ledger, { payer: who, seq, postedE8, limits, closedRid, heldE8, rev, intent }) => {
    const restored = ledger.restore([
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
          settings: settingsOf({ rev, ...(who.accountId === FIRST && { teamId: TEAM }) }),
          spending: spentInAll(100n),
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
        open: [
          {
            ...who,
            rid: RIDS[PAYERS.indexOf(who)] ?? '',
            amountE8: heldE8,
            scopes: who.accountId === FIRST ? `t:${TEAM}` : '',
          },
        ],
        spending: spentInAll(200n),
        scopes:
          who.accountId !== FIRST
            ? []
            : [...SCOPES.slice(1), `g:${FIRST}:customer`, `g:${FIRST}:customer=1`].map((scope) => ({
                ...{ accountId: FIRST, scope, name: 'team', rev, limits: { total: limits.limitE8 } },
                ...{ isLimited: true, spending: spentInAll(100n) },
              })),
      },
    ]);
    // Makes restored holds end much later, because a slow machine must not let them expire.
    return restored.then(() => ledger.age(-60_000));
  },
);
const trim = command('trim', fc.record({ payer, count: fc.nat(3) }), async (ledger, { payer: who, count }) => {
  const shard = shardOf(who.accountId);
  const head = (await ledger.readOutbox([shard], 100)).get(shard) ?? [];
  await ledger.trimOutbox(shard, head.slice(0, count));
});

/** An allowance and the payer that uses it: nearly always the one it belongs to. */
const anyGeneration = fc.tuple(fc.nat(GENERATIONS.length - 1), fc.nat(31), payer).map(([index, chance, stray]) => ({
  generation: GENERATIONS[index] ?? '',
  payer: chance === 0 ? stray : (PAYERS[index >> 1] ?? stray),
}));
const small = fc.constantFrom(0n, 1n, 10n, 20n, 40n, 50n, 51n, 100n);
/** A lease that ends at once, or not during the test. */
const anyLease = fc.constantFrom(0, 900_000, 900_000, 900_000);

const grant = command(
  'grant',
  fc.record({
    of: anyGeneration,
    keyRev: fc.constantFrom(2, 2, 2, 0),
    wantE8: small,
    besideE8: fc.constantFrom(0n, 0n, 300n, FUNDS),
    minE8: fc.constantFrom(1n, 1n, 20n),
    leaseMs: anyLease,
  }),
  (ledger, { of: { generation, payer: who }, ...request }) => ledger.grant({ ...who, generation, ...request }),
);
/** A report has as many calls as its cost. Mostly it has the next number, sometimes an earlier or later one. */
const report = command(
  'report',
  fc.record({
    of: anyGeneration,
    step: fc.constantFrom(1, 1, 1, 1, 1, 1, 0, 0, -1, 2),
    digest: fc.constantFrom('one', 'one', 'one', 'other'),
    costs: fc.array(fc.tuple(small, fc.constantFrom(0n, 0n, 5n)), { maxLength: 3 }),
    openE8: fc.constantFrom(0n, 0n, 10n, 20n, 50n, 100n, 300n, FUNDS),
    giveE8: small,
    wantE8: small,
    besideE8: fc.constantFrom(0n, 0n, 300n),
    keyRev: fc.constantFrom(2, 2, 2, 0),
    admits: fc.constantFrom(true, true, false),
    isPatient: fc.boolean(),
    isSettling: fc.boolean(),
    leaseMs: anyLease,
  }),
  async (ledger, { of: { generation, payer: who }, step, costs, ...request }) => {
    const last = await ledger.lastReport(who.accountId, generation);
    const calls = costs.map(([costE8, shortfallE8], index) => {
      const id = `${generation.slice(0, -4)}${index}`;
      return { rid: id, ending: 'settled' as const, costE8, shortfallE8, record: '{}' };
    });
    const sequence = (last?.sequence ?? 0) + step;
    return ledger.report({
      ...who,
      ...request,
      generation,
      sequence,
      rid: `${generation.slice(0, -4)}${String(sequence).padStart(4, '0')}`,
      calls: writeCalls(calls),
      costE8: calls.reduce((sum, each) => sum + each.costE8, 0n),
      shortfallE8: calls.reduce((sum, each) => sum + each.shortfallE8, 0n),
    });
  },
);
const sweep = command('sweep', fc.record({ accountId: fc.constantFrom(...ACCOUNTS) }), (ledger, { accountId }) =>
  ledger.expire({ accountId, keyId: '' }, `a ${accountId}`),
);
/** Ages everything by more than each of these times: a recall, the cover of open calls, the memory of closed calls, a lease. */
const age = command(
  'age',
  fc.record({ ms: fc.constantFrom(11_000, 11_000, 11_000, 121_000, 901_000, 3_600_001) }),
  (ledger, { ms }) => Promise.resolve(ledger.age(ms)),
);

const moreCommands = [reserve, settle, renew].map((arbitrary) => ({ weight: 3, arbitrary }));
const rareCommands = [setAccount, setKey, setScope, setTag, leave, restore, trim].map((arbitrary) => ({
  weight: 1,
  arbitrary,
}));
const mixed = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: reserve },
    { weight: 8, arbitrary: settle },
    ...[release, renew, roll, expire, credit, grant, report].map((arbitrary) => ({ weight: 3, arbitrary })),
    ...rareCommands,
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
);
/** Commands that grant some allowances first. */
const ofAllowances = fc
  .tuple(
    fc.array(grant, { minLength: 3, maxLength: 6, size: 'max' }),
    fc.array(
      fc.oneof(
        { weight: 16, arbitrary: report },
        ...[grant, sweep, age].map((arbitrary) => ({ weight: 2, arbitrary })),
        ...moreCommands,
        ...[release, expire, roll, credit].map((arbitrary) => ({ weight: 1, arbitrary })),
        ...rareCommands,
      ),
      { minLength: 10, maxLength: 40, size: 'max' },
    ),
  )
  .map((parts) => parts.flat());
const commands = fc.oneof(mixed, ofAllowances, ofAllowances);

/** Removes the waiting time, because two clocks may differ by a second. */
function withoutTime(value: unknown): unknown {
  const answer = value as { outcome?: string; limit?: object } | undefined;
  if (answer?.limit !== undefined) return { ...answer, limit: { ...answer.limit, resetsAtMs: undefined } };
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

/** Lets time pass for the allowances in Redis, by moving all of their times back. */
const AGE = `
  for _, account in ipairs(redis.call('KEYS', '{s*}:a:*')) do
    local fields = redis.call('HGETALL', account)
    for at = 1, #fields, 2 do
      local name, value = fields[at], fields[at + 1]
      if name == 'recall_until' or name == 'lost_until' then
        redis.call('HSET', account, name, string.format('%.0f', value - ARGV[1]))
      elseif string.sub(name, 1, 3) == 'al:' then
        local aged = string.gsub(value, '^(%S+ %S+ %S+ %S+ %S+ %S+) (%S+)', function(before, till)
          return before .. ' ' .. string.format('%.0f', till == '0' and 0 or till - ARGV[1])
        end)
        redis.call('HSET', account, name, aged)
      end
    end
  end
  for _, scope in ipairs(redis.call('KEYS', '{s*}:[ktm]:*')) do
    local until_ms = redis.call('HGET', scope, 'recall_until')
    if until_ms then redis.call('HSET', scope, 'recall_until', string.format('%.0f', until_ms - ARGV[1])) end
  end
  for _, due in ipairs(redis.call('KEYS', '{s*}:exp')) do
    for _, name in ipairs(redis.call('ZRANGE', due, 0, -1)) do
      if string.sub(name, 1, 2) == 'a ' then redis.call('ZINCRBY', due, -ARGV[1], name) end
    end
  end`;

async function ageIn(redis: Redis, ms: number): Promise<void> {
  await redis.eval(AGE, 0, ms);
}

describe('the ledger in Redis and the reference model', () => {
  it('return the same answers and hold the same state after each of several thousand random commands', async function () {
    this.timeout(120_000);
    const redis = connectRedis(await emptyRedis(), quiet);
    await checkRedis(redis);
    // Waits long for answers, because a busy machine must not fail the test.
    assert.ok(redis instanceof Redis);
    redis.options.commandTimeout = 30_000;
    // Recalls do not wait: both ledgers answer at once that the money is with nodes.
    const ledger = Object.assign(new RedisLedger({ redis, recallWaitMs: 0, ...TAGS }), {
      age: (ms: number) => ageIn(redis, ms),
    });
    let count = 0;
    const outcomes = new Map<string, number>();

    const prepare = async (each: Store) => {
      await each.open();
      for (const accountId of ACCOUNTS) {
        await each.setAccount(accountId, 'active');
        await each.credit({ accountId, rid: `${accountId.slice(0, -4)}eeee`, amountE8: FUNDS });
      }
      for (const [index, scope] of SCOPES.slice(1).entries())
        await each.setScope({
          accountId: FIRST,
          scope,
          name: 'team',
          rev: 0,
          limits: index === 0 ? { day: 20_000n } : {},
        });
      for (const tag of TAG_NAMES.slice(0, 2))
        await each.setScope({
          ...{ accountId: FIRST, scope: `g:${FIRST}:${tag}`, name: tag, rev: 0 },
          ...{ limits: { day: 300n }, isLimited: true },
        });
      for (const [index, who] of PAYERS.entries()) {
        const limits = { limitE8: index === 1 ? 1_500n : undefined, ...(index === 2 ? { callsPerMinute: 1 } : {}) };
        const settings = settingsOf({ name: '', ...(index < 2 && { teamId: TEAM, memberId: MEMBER }) });
        await each.setKey({ ...who, hash: hashOf(who), status: 'active', ...limits, settings });
      }
    };
    const answer = (each: Store, { run }: Command) =>
      run(each).then(
        (value) => withoutTime(value),
        (error: Error) => ({ outcome: error.name }),
      );

    const property = fc.asyncProperty(commands, async (list) => {
      await redis.flushdb();
      const model = new ModelLedger({ now: () => NOW, ...TAGS });
      await prepare(ledger);
      await prepare(model);
      for (const each of list) {
        const [real, expected] = [await answer(ledger, each), await answer(model, each)];
        assert.deepEqual(plain(real), plain(expected), each.name);
        assert.deepEqual(plain(await dumpRedis(redis)), plain(dumpMemory(model, NOW)), each.name);
        count += 1;
        const { outcome = 'done', limit: of } = (real ?? {}) as { outcome?: string; limit?: { kind: string } };
        const word = `${each.name.split(' ')[0]}: ${outcome}${of === undefined ? '' : ` of the ${of.kind}`}`;
        outcomes.set(word, (outcomes.get(word) ?? 0) + 1);
      }
    });
    try {
      await fc.assert(property, { numRuns: 300, endOnFailure: false, interruptAfterTimeLimit: 60_000 });
    } finally {
      await ledger.close();
    }
    assert.ok(count >= 2_000, `only ${count} commands were run`);
    const usual = ['reserve: reserved', 'reserve: insufficient_balance', 'settle: settled'];
    const limited = ['account', 'team', 'member', 'tag', 'key'].map((kind) => `reserve: limit_exceeded of the ${kind}`);
    for (const word of [
      ...usual,
      ...limited,
      'expire: expired',
      'release: released',
      'reserve: closed_before',
      'roll: rolled',
      'renew: insufficient_balance',
      'reserve: rate_limited',
      'reserve: too_many_tags',
      'reserve: too_many_limited_tags',
      'reserve: intent_conflict',
      'reserve: intent_open',
      'reserve: intent_charged',
      'credit: above_maximum',
      'reserve: LedgerUnavailable',
      'grant: granted',
      'grant: recalled',
      'report: reported',
      'report: recalling',
      'report: other_report',
      'report: unknown_generation',
      'sweep: expired',
    ]) {
      assert.ok((outcomes.get(word) ?? 0) > 0, `${word} never happened: ${show([...outcomes])}`);
    }
  });
});
