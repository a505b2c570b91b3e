import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { repair } from '../../../core/accounts/repair';
import { newId } from '../../../core/base/ids';
import { type Ledger, LedgerUnavailable, type Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { startShipper } from '../../../core/ledger/outbox/shipper';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import { readTagStates } from '../../../core/ledger/scope-rows';
import { tagScope } from '../../../core/ledger/scopes';
import { shardOf } from '../../../core/ledger/shard';
import { INVARIANTS, type Invariant } from '../../../core/ledger/verify/invariants';
import { verify, verifyOutbox } from '../../../core/ledger/verify/verify';
import { startWatch } from '../../../core/ledger/verify/watch';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { emptyRedis } from '../../support/shared';
import { until } from '../../support/until';
import {
  fundedPayer,
  instead,
  keyRequest,
  newPayer,
  openRedisLedger,
  reserveRequest,
  settingsOf,
  testTags,
  usageRecord,
} from './ledger-fixture';
import { insertCredit, insertPayer, insertTagBudget, insertTeam } from './ledger-rows';

/** An account with a credit of 1,000 (entry 1), calls of 100 and 200 (entries 2 and 3) and an open hold of 50. */
interface Customer {
  readonly payer: Payer;
  readonly open: string;
  readonly rids: readonly string[];
}

async function newCustomer(ledger: Ledger, database: Knex): Promise<Customer> {
  const payer = newPayer();
  await insertPayer(database, payer);
  await ledger.setAccount(payer.accountId, 'active');
  await ledger.setKey(keyRequest(payer));
  const credit = newId();
  await insertCredit(database, payer.accountId, credit, 1_000n);
  await ledger.credit({ accountId: payer.accountId, rid: credit, amountE8: 1_000n });
  const rids = [await spend(ledger, payer, 100n), await spend(ledger, payer, 200n)];
  const open = reserveRequest(payer, 50n, { facts: recordNow(payer) });
  await ledger.reserve(open);
  await shipShards({ ledger, database, log: quiet }, [shardOf(payer.accountId)]);
  return { payer, rids, open: open.rid };
}

async function spend(ledger: Ledger, payer: Payer, costE8: bigint, tags?: string): Promise<string> {
  const request = reserveRequest(payer, costE8, { tags });
  assert.equal((await ledger.reserve(request)).outcome, 'reserved');
  await ledger.settle({ ...payer, rid: request.rid, costE8, record: recordNow(payer) });
  return request.rid;
}

const recordNow = (payer: Payer) => JSON.stringify(usageRecord(payer, { createdAt: new Date().toISOString() }));

const look = async (ledger: Ledger, database: Knex, accountId?: string) =>
  (await verify({ ledger, database, patienceMs: 100 }, { limit: 1_000, days: 1, accountId })).violations;

describe('verification of the ledger', () => {
  let test: TestDatabase;
  let database: Knex;
  let ledger: Ledger;
  let redis: Redis;

  before(async () => {
    const url = await emptyRedis();
    redis = new Redis(url);
    const ours = connectRedis(url, quiet);
    await checkRedis(ours);
    ledger = await openRedisLedger(ours);
    await ledger.open();
    const postgres = DATABASES.find(({ name }) => name === 'Postgres');
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    database = test.database;
  });
  after(async () => {
    await ledger.close();
    redis.disconnect();
    await test.close();
  });

  const entriesOf = ({ payer }: Customer, seq: number) =>
    database('ledger_entries').where({ account_id: payer.accountId, seq });
  const recordsOf = ({ payer }: Customer) => database('usage_records').where({ account_id: payer.accountId });
  const key = ({ payer }: Customer, name: 'a' | 'k' | 'exp') => {
    const p = accountPrefix(payer.accountId);
    return name === 'a' ? `${p}a:${payer.accountId}` : name === 'k' ? `${p}k:${payer.keyId}` : `${p}exp`;
  };
  const add = (customer: Customer, field: string, amount: number) => redis.hincrby(key(customer, 'a'), field, amount);
  const setSpending = (scope: string, spentE8: number) =>
    database('scope_spending').where({ scope }).update({ spent_e8: spentE8 });
  const copyRecord = async (customer: Customer, changes: object) => {
    const [record] = await recordsOf(customer).limit(1);
    await database('usage_records').insert({ ...record, request_id: newId(), ...changes });
  };

  /** How to break each invariant, and the entry at which verification finds it. */
  const BREAKS: Readonly<
    Record<Exclude<Invariant, 'outbox_old'>, { seq?: number; by(customer: Customer): Promise<unknown> }>
  > = {
    account_missing: { by: (customer) => redis.del(key(customer, 'a')) },
    key_missing: {
      by: async (customer) => {
        await redis.del(key(customer, 'k'));
        await database('api_keys').where({ id: customer.payer.keyId }).update({ created_at: '2026-01-01' });
      },
    },
    available_negative: { seq: 3, by: (customer) => add(customer, 'available', -10_000) },
    held_negative: { seq: 3, by: (customer) => add(customer, 'held', -51) },
    balance_differs: { seq: 3, by: (customer) => add(customer, 'available', 1) },
    holds_differ: {
      seq: 3,
      by: async (customer) => [await add(customer, 'held', 1), await add(customer, 'available', -1)],
    },
    scope_holds_differ: { seq: 3, by: (customer) => redis.hincrby(key(customer, 'k'), 'held', 1) },
    hold_without_deadline: { seq: 3, by: (customer) => redis.zadd(key(customer, 'exp'), '+inf', customer.open) },
    hold_overdue: { seq: 3, by: (customer) => redis.zadd(key(customer, 'exp'), Date.now() - 61_000, customer.open) },
    limit_exceeded: { seq: 3, by: ({ payer }) => ledger.setKey(keyRequest(payer, { limitE8: 299n })) },
    spent_differs: { seq: 3, by: (customer) => redis.hincrby(key(customer, 'k'), 'spent', 1) },
    chain_gap: { seq: 3, by: (customer) => entriesOf(customer, 2).delete() },
    chain_broken: { seq: 2, by: (customer) => entriesOf(customer, 2).update({ amount_e8: -101 }) },
    chain_end_differs: {
      seq: 3,
      by: ({ payer }) => database('ledger_accounts').where({ account_id: payer.accountId }).update({ posted_e8: 1 }),
    },
    scope_sum_differs: {
      seq: 3,
      by: ({ payer }) => setSpending(`k:${payer.keyId}`, 301),
    },
    posted_differs: {
      seq: 3,
      by: async (customer) => [await add(customer, 'posted', 1), await add(customer, 'available', 1)],
    },
    entry_lost: { seq: 3, by: (customer) => entriesOf(customer, 3).delete() },
    ledger_behind: { seq: 2, by: (customer) => add(customer, 'seq', -1) },
    closed_twice: {
      seq: 4,
      by: async (customer) => {
        const [entry] = await entriesOf(customer, 3);
        await database('ledger_entries').insert({ ...entry, kind: 'expire', seq: 4, amount_e8: 0 });
        await add(customer, 'seq', 1);
      },
    },
    record_missing: { seq: 2, by: (customer) => recordsOf(customer).where({ rid: customer.rids[0] }).delete() },
    record_twice: { seq: 2, by: (customer) => copyRecord(customer, { rid: customer.rids[0], created_at: new Date() }) },
    record_without_entry: { by: (customer) => copyRecord(customer, { rid: newId() }) },
    record_differs: {
      seq: 2,
      by: (customer) => recordsOf(customer).where({ rid: customer.rids[0] }).update({ cost_e8: 99 }),
    },
    credit_missing: {
      by: async ({ payer }) => {
        const id = newId();
        await insertCredit(database, payer.accountId, id, 5n);
        await database('credits').where({ id }).update({ created_at: '2026-01-01' });
      },
    },
  };

  it('reports nothing if every invariant holds', async () => {
    const { payer } = await newCustomer(ledger, database);
    assert.deepEqual(await look(ledger, database, payer.accountId), []);
  });

  it('reports nothing if an account, a team and a member have a hold and no charge yet', async () => {
    const payer = newPayer();
    const owners = { teamId: newId(), memberId: newId() };
    await insertPayer(database, payer);
    await insertTeam(database, payer, owners);
    await database('scopes').insert({ scope: `m:${owners.memberId}`, account_id: payer.accountId });
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.setKey(keyRequest(payer, { settings: settingsOf(owners) }));
    const credit = newId();
    await insertCredit(database, payer.accountId, credit, 100n);
    await ledger.credit({ accountId: payer.accountId, rid: credit, amountE8: 100n });
    assert.equal((await ledger.reserve(reserveRequest(payer, 40n))).outcome, 'reserved');
    assert.deepEqual(await look(ledger, database, payer.accountId), []);
  });

  for (const [invariant, { seq, by }] of Object.entries(BREAKS)) {
    it(`reports the violation ${invariant}: ${INVARIANTS[invariant as Invariant]}`, async () => {
      const customer = await newCustomer(ledger, database);
      await by(customer);
      const found = await look(ledger, database, customer.payer.accountId);
      const named = found.find((each) => each.invariant === invariant);
      assert.ok(named !== undefined, JSON.stringify(found));
      assert.deepEqual([named.accountId, named.seq], [customer.payer.accountId, seq ?? null]);
    });
  }

  it('reports the violation outbox_old if an entry stays in the outbox for more than 60 s', async () => {
    const payer = await fundedPayer(ledger, 10n);
    const shard = shardOf(payer.accountId);
    const [entry] = (await ledger.readOutbox([shard], 1)).get(shard) ?? [];
    assert.ok(entry !== undefined);
    assert.deepEqual(await verifyOutbox({ ledger, database }), []);
    const late = instead(ledger, {
      readOutbox: async () => new Map([[shard, [{ ...entry, id: `${Date.now() - 61_000}-0` }]]]),
    });
    const [found] = await verifyOutbox({ ledger: late, database });
    assert.deepEqual([found?.invariant, found?.accountId], ['outbox_old', payer.accountId]);
  });

  it('tells operators of a violation that lasts once a day', async () => {
    const payer = await fundedPayer(ledger, 10n);
    const shard = shardOf(payer.accountId);
    const [entry] = (await ledger.readOutbox([shard], 1)).get(shard) ?? [];
    assert.ok(entry !== undefined);
    let passes = 0;
    const late = instead(ledger, {
      readOutbox: async () => {
        passes += 1;
        return new Map([[shard, [{ ...entry, id: `${Date.now() - 61_000}-0` }]]]);
      },
    });
    const day = new Date().toISOString().slice(0, 10);
    const watch = startWatch({ ledger: late, database, log: quiet, everyMs: 1, accountsPerSecond: 1e6 });
    await until('it has looked three times', () => passes >= 3);
    await watch.stop();
    const events = await database('events').where({ type: 'ledger.contradiction' }).whereLike('once', `% ${day} %`);
    const own = events.map(({ data }) => data).filter(({ accountId }) => accountId === payer.accountId);
    assert.equal(own.length, 1);
    assert.deepEqual([own[0].invariant, own[0].holds], ['outbox_old', INVARIANTS.outbox_old]);
  });

  it("accepts spending above a key's limit if that limit was lowered", async () => {
    const customer = await newCustomer(ledger, database);
    await BREAKS.limit_exceeded.by(customer);
    await database('audit_log').insert({
      id: newId(),
      actor: 'admin',
      action: 'key.update',
      subject: `key:${customer.payer.keyId}`,
      before: { balanceLimit: '5.00000000' },
      after: { balanceLimit: '0.00000299' },
    });
    assert.deepEqual(await look(ledger, database, customer.payer.accountId), []);
  });

  it("accepts spending above a key's limit if the budget of that limit was lowered, and not if it was raised", async () => {
    const customer = await newCustomer(ledger, database);
    const { accountId, keyId } = customer.payer;
    await BREAKS.limit_exceeded.by(customer);
    const budget = { id: newId(), account_id: accountId, scope: `k:${keyId}`, window: 'total', limit_e8: 299 };
    await database('budgets').insert(budget);
    const audit = (before: string, after: string) =>
      database('audit_log').insert({
        ...{ id: newId(), actor: 'admin', action: 'budget.update', subject: `budget:${budget.id}` },
        ...{ before: { limitUsd: before }, after: { limitUsd: after } },
      });
    await audit('0.00000001', '0.00000299');
    const [found] = await look(ledger, database, accountId);
    assert.equal(found?.invariant, 'limit_exceeded');
    await audit('5.00000000', '0.00000299');
    assert.deepEqual(await look(ledger, database, accountId), []);
  });

  describe('of a team', () => {
    const newTeam = async () => {
      const customer = await newCustomer(ledger, database);
      const { payer } = customer;
      const { accountId } = payer;
      const owners = { teamId: newId(), memberId: newId() };
      const scopes = await insertTeam(database, payer, owners);
      await ledger.setKey(keyRequest(payer, { settings: settingsOf(owners) }));
      await spend(ledger, payer, 60n);
      await shipShards({ ledger, database, log: quiet }, [shardOf(accountId)]);
      await spend(ledger, payer, 7n);
      await ledger.reserve(reserveRequest(payer, 30n, { facts: recordNow(payer) }));
      const inRedis = `${accountPrefix(accountId)}${scopes.team}`;
      const find = async () =>
        (await look(ledger, database, accountId)).map(({ invariant, scope, expected, found }) => ({
          ...{ invariant, scope, expected, found },
        }));
      assert.deepEqual(await find(), []);
      return { ...scopes, accountId, inRedis, find };
    };

    it('reports a changed sum of Postgres, and another sum of the ledger', async () => {
      const { team, inRedis, find } = await newTeam();
      await setSpending(team, 61);
      // The last charge is not in Postgres yet.
      const summed = { invariant: 'scope_sum_differs', scope: team, expected: '60', found: '61' };
      assert.deepEqual(await find(), [summed]);
      await redis.hincrby(inRedis, 'spent', -1);
      assert.deepEqual(await find(), [
        summed,
        { invariant: 'spent_differs', scope: team, expected: '67', found: '66' },
      ]);
    });

    it('compares the spending of a team that was deleted with its entries', async () => {
      const { accountId, team, find } = await newTeam();
      await database('api_keys').where({ account_id: accountId }).update({ team_id: null });
      await database('scopes').where({ scope: team }).delete();
      await database('teams').where({ account_id: accountId }).delete();
      assert.deepEqual(await find(), []);
      await setSpending(team, 59);
      const violation = { invariant: 'scope_sum_differs', scope: team, expected: '60', found: '59' };
      assert.deepEqual(await find(), [violation]);
    });

    it('reports a sum of holds that differs, and a team that the ledger has lost', async () => {
      const { team, inRedis, find } = await newTeam();
      await redis.hincrby(inRedis, 'held', 1);
      const held = { invariant: 'scope_holds_differ', scope: team, expected: '30' };
      assert.deepEqual(await find(), [{ ...held, found: '31' }]);
      await redis.del(inRedis);
      assert.deepEqual(await find(), [
        { ...held, found: '0' },
        { invariant: 'spent_differs', scope: team, expected: '67', found: '0' },
      ]);
    });

    it('reports spending above a limit, unless a change of the limits came after it', async () => {
      const { accountId, team, find } = await newTeam();
      await database('budgets').insert({
        id: newId(),
        account_id: accountId,
        scope: team,
        window: 'total',
        limit_e8: 50,
      });
      await database('scopes').where({ scope: team }).update({ changed_at: '2026-01-01' });
      await ledger.setScope({ accountId, scope: team, rev: 1, name: 'a team', limits: { total: 50n } });
      const violation = { invariant: 'limit_exceeded', scope: team, expected: '≤ 50', found: '67' };
      assert.deepEqual(await find(), [violation]);
      await database('scopes').where({ scope: team }).update({ changed_at: new Date() });
      assert.deepEqual(await find(), []);
    });

    it('begins at the checkpoint with the sums that Postgres had then', async () => {
      const { accountId, team, inRedis, find } = await newTeam();
      await database('ledger_checkpoints').insert({ account_id: accountId, seq: 4, posted_e8: 640 });
      await database('ledger_entries').where({ account_id: accountId }).delete();
      await database('usage_records').where({ account_id: accountId }).delete();
      await database('credits').where({ account_id: accountId }).update({ dropped_posted_e8: 1_000 });
      assert.deepEqual(await find(), []);
      await redis.hincrby(inRedis, 'spent', 1);
      assert.deepEqual(await find(), [{ invariant: 'spent_differs', scope: team, expected: '67', found: '68' }]);
    });
  });

  it('compares the tags that the ledger counts now with their entries and holds, and the sums of Postgres of all', async () => {
    testTags.forget().from = (scopes) => readTagStates(database, scopes);
    const { payer } = await newCustomer(ledger, database);
    const { accountId } = payer;
    const [request] = await insertTagBudget(database, accountId, { tag: 'customer', window: 'day', limitE8: 900n });
    assert.ok(request !== undefined);
    await ledger.setScope(request);
    const ship = () => shipShards({ ledger, database, log: quiet }, [shardOf(accountId)]);
    const find = async () =>
      (await look(ledger, database, accountId)).map(({ invariant, scope, expected, found }) => ({
        ...{ invariant, scope, expected, found },
      }));
    const [one, two] = [tagScope(accountId, 'customer=1'), tagScope(accountId, 'customer=2')];
    await spend(ledger, payer, 60n, 'agent=a customer=1');
    await spend(ledger, payer, 5n, 'customer=2');
    await ship();
    await ledger.expire({ accountId, keyId: '' }, `g ${accountId}`);
    assert.deepEqual(await ledger.listTags(accountId), []);
    await spend(ledger, payer, 7n, 'customer=1');
    await ledger.reserve(reserveRequest(payer, 30n, { facts: recordNow(payer), tags: 'customer=1' }));
    assert.deepEqual(await find(), []);
    await setSpending(two, 6);
    const summed = { invariant: 'scope_sum_differs', scope: two, expected: '5', found: '6' };
    await redis.hincrby(`${accountPrefix(accountId)}${one}`, 'spent', -1);
    await redis.hincrby(`${accountPrefix(accountId)}${one}`, 'held', 1);
    assert.deepEqual(await find(), [
      summed,
      { invariant: 'scope_holds_differ', scope: one, expected: '30', found: '31' },
      { invariant: 'spent_differs', scope: one, expected: '67', found: '66' },
    ]);
  });

  it('includes entries that are in the outbox and not yet in Postgres', async () => {
    const { payer } = await newCustomer(ledger, database);
    await spend(ledger, payer, 7n);
    assert.deepEqual(await look(ledger, database, payer.accountId), []);
    const p = accountPrefix(payer.accountId);
    await redis.del(`${p}ob`);
    const [lost] = await look(ledger, database, payer.accountId);
    assert.deepEqual([lost?.invariant, lost?.seq], ['entry_lost', 4]);
  });

  it('reports nothing while calls, credits and expiries run', async function () {
    this.timeout(60_000);
    const customers = await Promise.all(Array.from({ length: 4 }, () => newCustomer(ledger, database)));
    const shipper = startShipper({ ledger, database, log: quiet });
    let stopped = false;
    const work = async ({ payer }: Customer, round: number) => {
      while (!stopped) {
        await new Promise((wake) => setTimeout(wake, 10));
        // A busy machine may be too slow for Redis: such a call does not happen or stays open.
        await once(payer, round).catch((error) => assert.ok(error instanceof LedgerUnavailable, String(error)));
      }
    };
    const once = async (payer: Payer, round: number) => {
      const request = reserveRequest(payer, 3n, {
        facts: recordNow(payer),
        ...(round === 0 ? { lifetimeMs: 0 } : {}),
      });
      const { outcome } = await ledger.reserve(request);
      if (outcome === 'insufficient_balance') {
        const rid = newId();
        await insertCredit(database, payer.accountId, rid, 500n);
        await ledger.credit({ accountId: payer.accountId, rid, amountE8: 500n });
      }
      if (outcome !== 'reserved') return;
      if (round === 0) await ledger.expire(payer, request.rid);
      else await ledger.settle({ ...payer, rid: request.rid, costE8: BigInt(round), record: recordNow(payer) });
      shipper.nudge(payer.accountId);
    };
    const working = customers.flatMap((customer) => [0, 1, 2].map((round) => work(customer, round)));
    const entries: number[] = [];
    try {
      for (let pass = 0; pass < 5; pass += 1) {
        for (const { payer } of customers) {
          const done = await verify(
            { ledger, database, patienceMs: 300 },
            { limit: 1, days: 1, accountId: payer.accountId },
          );
          assert.deepEqual(done.violations, []);
          entries.push(done.entries);
        }
      }
    } finally {
      stopped = true;
      await Promise.all(working);
      await shipper.stop();
    }
    assert.ok(Math.max(...entries) > 20, `too little went on: ${entries}`);
  });

  it('starts at the checkpoint if older entries were dropped', async () => {
    const customer = await newCustomer(ledger, database);
    const { accountId } = customer.payer;
    await database('ledger_checkpoints').insert({ account_id: accountId, seq: 2, posted_e8: 900 });
    await entriesOf(customer, 1).delete();
    await entriesOf(customer, 2).delete();
    await recordsOf(customer).where({ rid: customer.rids[0] }).delete();
    assert.deepEqual(await look(ledger, database, accountId), []);
    await redis.hincrby(key(customer, 'k'), 'spent', 1);
    assert.deepEqual(
      (await look(ledger, database, accountId)).map(({ invariant }) => invariant),
      ['spent_differs'],
    );
  });

  describe('with repair', () => {
    const mend = async (customer: Customer) => {
      const { accountId } = customer.payer;
      const repairs = [];
      for (const each of await look(ledger, database, accountId))
        repairs.push(await repair({ ledger, calls: ledger, database }, each, 'admin'));
      await shipShards({ ledger, database, log: quiet }, [shardOf(accountId)]);
      const audits = await database('audit_log').where({ subject: `account:${accountId}`, action: 'ledger.repair' });
      return { repairs, left: await look(ledger, database, accountId), audits: audits.length };
    };

    it('returns an overdue hold to its account', async () => {
      const customer = await newCustomer(ledger, database);
      await BREAKS.hold_overdue.by(customer);
      assert.deepEqual(await mend(customer), { repairs: ['expired'], left: [], audits: 1 });
      assert.equal((await ledger.readAccount(customer.payer.accountId))?.heldE8, 0n);
    });

    it('sends a credit that has no entry to the ledger', async () => {
      const customer = await newCustomer(ledger, database);
      await BREAKS.credit_missing.by(customer);
      assert.deepEqual(await mend(customer), { repairs: ['credit_sent'], left: [], audits: 1 });
      assert.equal((await ledger.readAccount(customer.payer.accountId))?.postedE8, 705n);
    });

    it('refunds, once, a charge that came after another closing entry', async () => {
      const customer = await newCustomer(ledger, database);
      const { accountId } = customer.payer;
      const [charge] = await entriesOf(customer, 3);
      await entriesOf(customer, 2).delete();
      await entriesOf(customer, 3).delete();
      await database('ledger_entries').insert([
        { ...charge, kind: 'expire', seq: 2, amount_e8: 0, posted_e8: 1_000 },
        { ...charge, amount_e8: -300, posted_e8: 700 },
      ]);
      const found = (await look(ledger, database, accountId)).find(({ invariant }) => invariant === 'closed_twice');
      assert.ok(found !== undefined);
      const away = instead(ledger, { credit: () => Promise.reject(new LedgerUnavailable('away')) });
      await assert.rejects(repair({ ledger: away, calls: ledger, database }, found, 'admin'));
      const audits = () =>
        database('audit_log')
          .where({ subject: `account:${accountId}` })
          .select('action');
      assert.deepEqual(await audits(), [{ action: 'ledger.repair' }], 'the credit and what is said of it are one');
      assert.equal((await database('credits').where({ account_id: accountId, amount_e8: 300 })).length, 1);
      assert.equal(await repair({ ledger, calls: ledger, database }, found, 'admin'), 'charge_credited');
      await mend(customer);
      assert.equal((await audits()).length, 1);
      assert.equal((await ledger.readAccount(accountId))?.postedE8, 1_000n);
      assert.ok(!(await look(ledger, database, accountId)).some(({ invariant }) => invariant === 'closed_twice'));
      await mend(customer);
      assert.equal((await ledger.readAccount(accountId))?.postedE8, 1_000n);
    });

    it('moves no money without a known cause', async () => {
      for (const invariant of ['posted_differs', 'entry_lost', 'chain_broken', 'balance_differs'] as const) {
        const customer = await newCustomer(ledger, database);
        await BREAKS[invariant].by(customer);
        const before = await ledger.readAccount(customer.payer.accountId);
        const { repairs, audits } = await mend(customer);
        assert.deepEqual([new Set(repairs), audits], [new Set([null]), 0]);
        assert.deepEqual(await ledger.readAccount(customer.payer.accountId), before);
      }
    });
  });
});

describe('verification of the ledger in memory', () => {
  it('reports nothing if every invariant holds, and names a broken invariant in PGlite', async function () {
    this.timeout(60_000);
    const test = await DATABASES.find(({ name }) => name === 'PGlite')?.open();
    assert.ok(test !== undefined);
    const ledger = new MemoryLedger();
    await ledger.open();
    const { database } = test;
    const { payer } = await newCustomer(ledger, database);
    assert.deepEqual(await look(ledger, database), []);
    await database('ledger_entries').where({ account_id: payer.accountId, seq: 2 }).update({ amount_e8: -99 });
    const found = await look(ledger, database);
    assert.deepEqual(
      found.map(({ invariant, accountId, seq, scope }) => [invariant, accountId, seq, scope]),
      [
        ['chain_broken', payer.accountId, 2, null],
        ['scope_sum_differs', payer.accountId, 3, `a:${payer.accountId}`],
        ['scope_sum_differs', payer.accountId, 3, `k:${payer.keyId}`],
        ['spent_differs', payer.accountId, 3, `a:${payer.accountId}`],
        ['spent_differs', payer.accountId, 3, `k:${payer.keyId}`],
        ['posted_differs', payer.accountId, 3, null],
        ['record_differs', payer.accountId, 2, null],
      ],
    );
    await test.close();
  });
});
