import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { listAccountEvents, listOperatorEvents } from '../../../core/events/feed';
import type { OutboxEntry } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { raiseLedgerEvents } from '../../../core/ledger/outbox/ledger-events';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { rejection } from '../../support/rejection';
import { fundedPayer, instead, reserveRequest } from '../ledger/ledger-fixture';

const USD = 100_000_000n;
const ALL = { after: 0, limit: 1_000 };

interface TestBudget {
  readonly window?: string;
  readonly limitE8?: bigint;
  readonly thresholds?: readonly number[];
}

for (const { name, open } of DATABASES) {
  describe(`the events of the ledger on ${name}`, () => {
    let test: TestDatabase;
    let database: Knex;
    let ledger: MemoryLedger;
    let nowMs: number;

    before(async function () {
      this.timeout(120_000);
      test = await open();
      database = test.database;
    });
    after(() => test.close());
    beforeEach(async () => {
      nowMs = Date.UTC(2026, 10, 20, 12); // A Friday.
      ledger = new MemoryLedger({ now: () => nowMs });
      await ledger.open();
    });

    const customer = async (balanceLowE8?: bigint) => {
      const payer = await fundedPayer(ledger, 1_000n * USD);
      const row = { id: payer.accountId, name: 'acme', balance_low_e8: balanceLowE8?.toString() ?? null };
      await database('accounts').insert(row);
      return payer;
    };
    const addBudget = async (
      accountId: string,
      scope: string,
      { window = 'month', limitE8 = 100n * USD, thresholds = [50, 80, 100] }: TestBudget = {},
    ) => {
      const id = newId();
      const row = { id, account_id: accountId, scope, window, limit_e8: String(limitE8) };
      await database('budgets').insert({ ...row, thresholds: JSON.stringify(thresholds) });
      return id;
    };
    const spend = async (payer: { accountId: string; keyId: string }, costE8: bigint) => {
      const request = reserveRequest(payer, costE8);
      assert.equal((await ledger.reserve(request)).outcome, 'reserved');
      await ledger.settle({ ...payer, rid: request.rid, costE8, record: request.record });
    };
    const ship = (from = ledger) => shipShards({ ledger: from, database, log: quiet }, ALL_SHARDS);
    const eventsOf = async (accountId: string) => (await listAccountEvents(database, accountId, ALL)).items;
    const reachedOf = async (accountId: string) =>
      (await eventsOf(accountId))
        .filter(({ type }) => type === 'budget.reached')
        .map(({ data }) => data as Record<string, unknown>);
    const thresholdsOf = async (accountId: string) =>
      (await reachedOf(accountId)).map(({ scope, window, threshold }) => `${scope} ${window} ${threshold}`);

    it('are one for each threshold that a charge passes, in order, with what is spent', async () => {
      const payer = await customer();
      const budgetId = await addBudget(payer.accountId, `k:${payer.keyId}`);
      await spend(payer, 49n * USD);
      await ship();
      assert.deepEqual(await eventsOf(payer.accountId), []);
      await spend(payer, 21n * USD);
      await ship();
      await spend(payer, 31n * USD);
      await ship();
      const events = await eventsOf(payer.accountId);
      assert.deepEqual(
        events.map(({ sequence, type, data }) => [sequence, type, (data as { threshold: number }).threshold]),
        [
          [1, 'budget.reached', 50],
          [2, 'budget.reached', 80],
          [3, 'budget.reached', 100],
        ],
      );
      const [first, , last] = events;
      assert.deepEqual(Object.keys(first ?? {}), ['id', 'sequence', 'type', 'timestamp', 'accountId', 'data']);
      const amounts = { limitUsd: '100.00000000', spentUsd: '101.00000000' };
      const of = { budgetId, scope: 'key', scopeId: payer.keyId, name: null, window: 'month' };
      assert.deepEqual(last?.data, { ...of, threshold: 100, ...amounts });
      await spend(payer, 50n * USD);
      await ship();
      assert.equal((await eventsOf(payer.accountId)).length, 3);
    });

    it('begin again with each window, and never again for the window `total`', async () => {
      const payer = await customer();
      for (const window of ['day', 'week', 'month', 'total'])
        await addBudget(payer.accountId, `a:${payer.accountId}`, { window, limitE8: USD, thresholds: [100] });
      const all = ['day', 'month', 'total', 'week'].map((window) => `account ${window} 100`);
      await spend(payer, USD);
      await ship();
      assert.deepEqual(await thresholdsOf(payer.accountId), all);
      nowMs = Date.UTC(2026, 10, 22, 23, 59);
      await spend(payer, USD);
      // Both sides of midnight in one batch: the Sunday's day, and on Monday a new day and a new week.
      nowMs = Date.UTC(2026, 10, 23, 0, 1);
      await spend(payer, USD);
      await ship();
      const [sunday, monday, week, ...none] = (await thresholdsOf(payer.accountId)).slice(4);
      assert.deepEqual([sunday, monday, week, none], ['account day 100', 'account day 100', 'account week 100', []]);
      nowMs = Date.UTC(2026, 11, 1);
      await spend(payer, USD);
      await ship();
      const windows = (await thresholdsOf(payer.accountId)).slice(7);
      assert.deepEqual(windows, ['account day 100', 'account month 100', 'account week 100']);
    });

    it('name the value of a tag, whose own budget replaces that of the tag for its window', async () => {
      const payer = await customer();
      const tag = `g:${payer.accountId}:customer`;
      await addBudget(payer.accountId, tag, { window: 'day', thresholds: [50] });
      await addBudget(payer.accountId, tag, { window: 'week', thresholds: [50] });
      await addBudget(payer.accountId, `${tag}=4711`, { window: 'day', limitE8: 300n * USD, thresholds: [50] });
      const values = ['4711', '12', 'none'];
      for (const usd of [60n, 50n, 49n]) await spend(payer, usd * USD);
      const tagged = (entries: readonly OutboxEntry[]) =>
        entries.map((entry) => (entry.kind === 'charge' ? { ...entry, scopes: `${tag}=${values.shift()}` } : entry));
      const readOutbox: MemoryLedger['readOutbox'] = async (shards, limit) =>
        new Map([...(await ledger.readOutbox(shards, limit))].map(([shard, entries]) => [shard, tagged(entries)]));
      await ship(instead(ledger, { readOutbox }));
      const reached = (await reachedOf(payer.accountId)).map(({ scope, scopeId, name, window, spentUsd }) =>
        [scope, scopeId, name, window, spentUsd].join(),
      );
      assert.deepEqual(reached, [
        'tag,,customer=12,day,50.00000000',
        'tag,,customer=12,week,50.00000000',
        'tag,,customer=4711,week,60.00000000',
      ]);
    });

    it('report what earlier charges have reached once a limit is lowered, with the next charge', async () => {
      const payer = await customer();
      const budgetId = await addBudget(payer.accountId, `k:${payer.keyId}`);
      await spend(payer, 40n * USD);
      await ship();
      await database('budgets')
        .where({ id: budgetId })
        .update({ limit_e8: String(50n * USD) });
      assert.deepEqual(await thresholdsOf(payer.accountId), []);
      await spend(payer, 1n);
      await ship();
      assert.deepEqual(await thresholdsOf(payer.accountId), ['key month 50', 'key month 80']);
    });

    it('have `balance.low` each time the balance falls below the threshold of the account', async () => {
      const payer = await customer(900n * USD);
      await spend(payer, 100n * USD);
      await ship();
      assert.deepEqual(await eventsOf(payer.accountId), [], 'the balance equals the threshold');
      await spend(payer, USD);
      await spend(payer, USD);
      await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 10n * USD });
      await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: -9n * USD });
      await spend(payer, USD);
      await ship();
      assert.deepEqual(
        (await eventsOf(payer.accountId)).map(({ type, data }) => [type, data]),
        ['899.00000000', '899.00000000'].map((balanceUsd) => [
          'balance.low',
          { balanceUsd, balanceLowUsd: '900.00000000' },
        ]),
      );
    });

    it('exist once if a killed shipper left its entries, and if entries are shipped again', async () => {
      const payer = await customer(950n * USD);
      await addBudget(payer.accountId, `k:${payer.keyId}`);
      await spend(payer, 85n * USD);
      const forgetful = instead(ledger, { trimOutbox: async () => undefined });
      await ship(forgetful);
      await ship(forgetful);
      await Promise.all([ship(), ship()]);
      const types = (await eventsOf(payer.accountId)).map(({ type }) => type);
      assert.deepEqual(types, ['budget.reached', 'budget.reached', 'balance.low']);
    });

    it('are not written without their entries, and the entries not without them', async () => {
      const payer = await customer(950n * USD);
      await spend(payer, 85n * USD);
      const before = await database('event_feeds').orderBy('feed');
      // The last statement of the transaction, the commit, fails.
      const aborting = instead(database, {
        transaction: ((work: (trx: Knex.Transaction) => Promise<unknown>) =>
          database.transaction(async (trx) => {
            await work(trx);
            throw new Error('killed');
          })) as unknown as Knex['transaction'],
      });
      await rejection(shipShards({ ledger, database: aborting, log: quiet }, ALL_SHARDS));
      assert.deepEqual(await eventsOf(payer.accountId), []);
      assert.deepEqual(await database('event_feeds').orderBy('feed'), before);
      await ship();
      assert.deepEqual(
        (await eventsOf(payer.accountId)).map(({ sequence }) => sequence),
        [1],
      );
    });

    it('have numbers without gaps in both feeds, whichever of many transactions writes them', async () => {
      const entries = async (): Promise<readonly OutboxEntry[]> => {
        const payer = await customer(950n * USD);
        await spend(payer, 85n * USD);
        return [...(await ledger.readOutbox(ALL_SHARDS, 1_000)).values()]
          .flat()
          .filter((entry) => entry.accountId === payer.accountId);
      };
      const mine = [await entries(), await entries(), await entries()];
      const [{ last: before }] = await database('event_feeds').orderBy('feed', 'desc').limit(1);
      const seen: number[] = [];
      let isDone = false;
      const reader = async () => {
        while (!isDone) {
          const { items } = await listOperatorEvents(database, undefined, {
            after: seen.at(-1) ?? Number(before),
            limit: 1_000,
          });
          seen.push(...items.map(({ sequence }) => sequence));
        }
      };
      const reading = reader();
      // Each transaction raises an event of each account under a name of its own, with the accounts in another order.
      const write = (turn: number) =>
        database.transaction(async (trx) => {
          const own = [...mine.slice(turn % 3), ...mine.slice(0, turn % 3)].flat();
          await raiseLedgerEvents(
            trx,
            own.map((entry) => ({ ...entry, rid: `${entry.rid} ${turn}` })),
          );
        });
      await Promise.all(Array.from({ length: 12 }, (_, turn) => write(turn)));
      isDone = true;
      await reading;
      const { items } = await listOperatorEvents(database, undefined, { after: Number(before), limit: 1_000 });
      const expected = Array.from({ length: 36 }, (_, index) => Number(before) + 1 + index);
      assert.deepEqual(
        items.map(({ sequence }) => sequence),
        expected,
      );
      assert.deepEqual(seen, expected.slice(0, seen.length), 'a reader saw the numbers in order and missed none');
      for (const [entry] of mine) {
        const own = await eventsOf(entry?.accountId ?? '');
        assert.deepEqual(
          own.map(({ sequence }) => sequence),
          Array.from({ length: 12 }, (_, index) => index + 1),
        );
      }
    });
  });
}
