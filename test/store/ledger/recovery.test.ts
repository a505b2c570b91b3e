import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import knexOf, { type Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import type { Ledger, Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { resendCredits } from '../../../core/ledger/outbox/credits';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { ensureReady, recover, registerHoldSource } from '../../../core/ledger/recovery';
import { readTagStates } from '../../../core/ledger/scope-rows';
import { dayNumberOf, type SpendingLimits, tagScope } from '../../../core/ledger/scopes';
import { ALL_SHARDS, shardOf } from '../../../core/ledger/shard';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { emptyRedis } from '../../support/shared';
import { until } from '../../support/until';
import {
  assertIncludes,
  hashOf,
  instead,
  keyRequest,
  newPayer,
  openRedisLedger,
  reserveRequest,
  settingsOf,
  tagSettings,
  testTags,
  usageRecord,
} from './ledger-fixture';
import { insertCredit, insertPayer, insertTagBudget, insertTeam, readChain } from './ledger-rows';

let redisUrl = '';
const openRedis = async () => {
  const redis = connectRedis(redisUrl, quiet);
  await checkRedis(redis);
  return openRedisLedger(redis);
};
/** The kinds of ledgers, and how each loses everything in it. */
const LEDGERS: readonly { name: string; open(): Promise<Ledger>; lose(ledger: Ledger): Promise<Ledger> }[] = [
  {
    name: 'in Redis',
    open: async () => {
      redisUrl = await emptyRedis();
      return openRedis();
    },
    lose: async (ledger) => {
      const other = new Redis(redisUrl);
      await other.flushall();
      other.disconnect();
      return ledger;
    },
  },
  {
    name: 'in the process',
    open: async () => new MemoryLedger(tagSettings(testTags)),
    lose: async () => new MemoryLedger(tagSettings(testTags)),
  },
];

for (const database of DATABASES) {
  for (const { name, open, lose } of LEDGERS) {
    describe(`recovery of the ledger ${name} from ${database.name}`, () => {
      let test: TestDatabase;
      let knex: Knex;
      let ledger: Ledger;

      before(async function () {
        this.timeout(60_000);
        test = await database.open();
        knex = test.database;
      });
      after(() => test.close());
      beforeEach(async () => {
        ledger = await open();
        await ensureReady({ ledger, database: knex, log: quiet });
      });
      afterEach(() => ledger.close());

      const fund = async (amountE8: bigint, limitE8?: bigint): Promise<Payer> => {
        const payer = newPayer();
        await insertPayer(knex, payer, limitE8);
        await ledger.setAccount(payer.accountId, 'active');
        await ledger.setKey(keyRequest(payer, { limitE8 }));
        const rid = newId();
        await insertCredit(knex, payer.accountId, rid, amountE8);
        await ledger.credit({ accountId: payer.accountId, rid, amountE8 });
        return payer;
      };
      const spend = async (payer: Payer, costE8: bigint) => {
        const request = reserveRequest(payer, costE8);
        await ledger.reserve(request);
        const record = JSON.stringify(usageRecord(payer));
        await ledger.settle({ ...payer, rid: request.rid, costE8, record });
        return request.rid;
      };
      const ship = () => shipShards({ ledger, database: knex, log: quiet }, ALL_SHARDS);
      const stateOf = async (payer: Payer) => [await ledger.readAccount(payer.accountId), await ledger.readKey(payer)];

      it('restores the same accounts, keys and answers after the ledger lost all data', async () => {
        const payers = await Promise.all([fund(1_000n), fund(500n, 450n), fund(0n)]);
        const rid = await spend(payers[0], 300n);
        await spend(payers[1], 400n);
        const before = await Promise.all(payers.map(stateOf));
        await ship();
        ledger = await lose(ledger);
        assert.equal(await ledger.isReady(), false);
        await ensureReady({ ledger, database: knex, log: quiet });
        assert.equal(await ledger.isReady(), true);
        assert.deepEqual(await Promise.all(payers.map(stateOf)), before);
        assert.deepEqual(await ledger.findKey(hashOf(payers[1])), { outcome: 'found', ...payers[1] });
        assert.equal((await ledger.reserve(reserveRequest(payers[1], 51n))).outcome, 'limit_exceeded');
        const again = await ledger.settle({ ...payers[0], rid, costE8: 300n, record: '' });
        assert.deepEqual(again, { outcome: 'settled', chargedE8: 300n, shortfallE8: 0n });
        await spend(payers[0], 5n);
        await ship();
        assert.equal((await readChain(knex, payers[0].accountId)).length, 3);
      });

      it('restores the tags that a key and its team require, each once', async () => {
        const payer = await fund(1_000n);
        const owners = { teamId: newId(), memberId: newId() };
        await insertTeam(knex, payer, owners);
        await knex('teams').where({ id: owners.teamId }).update({ required_tags: '["customer","project"]' });
        await knex('api_keys').where({ id: payer.keyId }).update({ rev: 1, required_tags: '["session","customer"]' });
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        const requiredTags = (await ledger.readKey(payer))?.settings.requiredTags;
        assert.deepEqual(requiredTags, ['customer', 'project', 'session']);
      });

      it('restores the spending and the limits of an account, a team and a member', async () => {
        const payer = await fund(1_000n);
        const { accountId, keyId } = payer;
        const owners = { teamId: newId(), memberId: newId() };
        const { team, member } = await insertTeam(knex, payer, owners);
        const account = `a:${accountId}`;
        await knex('api_keys').where({ id: keyId }).update({ rev: 1 });
        await ledger.setKey(keyRequest(payer, { settings: settingsOf({ rev: 1, ...owners }) }));
        const request = (scope: string, name: string, limits: SpendingLimits) => ({
          ...{ accountId, scope, rev: 3, name, limits },
        });
        const requests = [
          request(account, 'an account', { month: 900n }),
          request(team, 'a team', { total: 800n, day: 300n }),
        ];
        for (const { scope, rev, limits } of requests) {
          await knex('scopes').insert({ scope, account_id: accountId, rev }).onConflict('scope').merge(['rev']);
          for (const [window, limitE8] of Object.entries(limits)) {
            const budget = { id: newId(), account_id: accountId, scope, window, limit_e8: String(limitE8) };
            await knex('budgets').insert(budget);
          }
        }
        // Postgres has no limits of the member, only what it spends.
        for (const each of [...requests, { ...request(member, 'a member', {}), rev: 0 }]) await ledger.setScope(each);
        await ledger.reserve(
          reserveRequest(payer, 250n, { keyRev: 1, rid: newId(), lifetimeMs: undefined, facts: '' }),
        );
        const spent = reserveRequest(payer, 40n, { keyRev: 1 });
        await ledger.reserve(spent);
        await ledger.settle({ ...payer, rid: spent.rid, costE8: 40n, record: JSON.stringify(usageRecord(payer)) });
        const look = () => Promise.all([account, team, member].map((scope) => ledger.readScope(accountId, scope)));
        const before = await look();
        assert.deepEqual(
          before.map((scope) => [scope?.heldE8, scope?.spending.spentE8.day]),
          [
            [250n, 40n],
            [250n, 40n],
            [250n, 40n],
          ],
        );
        await ship();
        const unregister = registerHoldSource(async () => [{ ...payer, rid: newId(), amountE8: 250n }]);
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet }).finally(unregister);
        assert.deepEqual(await look(), before);
        assertIncludes((await ledger.readKey(payer))?.settings, owners);
        const refused = await ledger.reserve(reserveRequest(payer, 11n, { keyRev: 1 }));
        assertIncludes(refused, { outcome: 'limit_exceeded', availableE8: 10n });
        // A change with an older revision than that of Postgres is not applied.
        await ledger.setScope({ ...request(team, 'a team', {}), rev: 2 });
        assert.deepEqual(await look(), before);
      });

      it('restores the limits of tags, whose values come back with the next calls and what they have spent', async () => {
        testTags.forget().from = (scopes) => readTagStates(knex, scopes);
        const payer = await fund(1_000n);
        const { accountId } = payer;
        const budgets = [
          { tag: 'customer', window: 'day', limitE8: 100n },
          { tag: 'customer', value: '2', window: 'total', limitE8: 70n },
          { tag: 'project', value: 'a', window: 'month', limitE8: 60n },
        ] as const;
        for (const budget of budgets)
          for (const request of await insertTagBudget(knex, accountId, budget)) await ledger.setScope(request);
        const ask = (amountE8: bigint, tags: string) => ledger.reserve(reserveRequest(payer, amountE8, { tags }));
        for (const tags of ['customer=1 project=a', 'customer=2', 'agent=x']) {
          const spent = reserveRequest(payer, 50n, { tags });
          await ledger.reserve(spent);
          await ledger.settle({ ...payer, rid: spent.rid, costE8: 50n, record: JSON.stringify(usageRecord(payer)) });
        }
        await ship();
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        assert.deepEqual(await ledger.listTags(accountId), []);
        for (const [tags, leftE8] of [
          ['customer=1', 50n],
          ['customer=2', 20n],
          ['customer=3', 100n],
          ['project=a', 10n],
        ] as const)
          assertIncludes(await ask(leftE8 + 1n, tags), { outcome: 'limit_exceeded', availableE8: leftE8 });
        assertIncludes(await ask(10n, 'customer=1 project=a'), { outcome: 'reserved' });
        assertIncludes(await ask(500n, 'project=b agent=x'), { outcome: 'reserved' });
        const state = await ledger.readScope(accountId, tagScope(accountId, 'project=b'));
        assert.deepEqual([state?.heldE8, state?.spending.spentE8.total], [500n, 0n]);
      });

      it('restores a day, a week from Monday and a month of UTC that end on the last day with a charge', async () => {
        const payer = await fund(1_000n);
        const scope = `k:${payer.keyId}`;
        const spent = { '2199-06-30': 1, '2199-07-07': 2, '2199-07-08': 4, '2199-07-10': 8 };
        const rows = Object.entries(spent).map(([day, spent_e8]) => ({ scope, day, spent_e8 }));
        await knex('scope_spending').insert(rows);
        await ship();
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        const state = await ledger.readScope(payer.accountId, scope);
        // 8 July 2199 is a Monday.
        const spentE8 = { total: 15n, day: 8n, week: 12n, month: 14n };
        assert.deepEqual(state?.spending, { day: dayNumberOf(Date.UTC(2199, 6, 10)), spentE8 });
      });

      it('restores the Idempotency-Keys of charged calls, and no others', async () => {
        const payer = await fund(1_000n);
        const begin = async (key: string) => {
          const intent = { key, body: 'body', requestId: `req_${newId()}` };
          const request = reserveRequest(payer, 100n, { intent });
          await ledger.reserve(request);
          const routing = { candidates: [], of: 1, attempts: [], clientRetry: undefined, intent };
          const createdAt = new Date().toISOString();
          const record = JSON.stringify(usageRecord(payer, { requestId: intent.requestId, createdAt, routing }));
          return { ...payer, rid: request.rid, record, intent };
        };
        const [charged, released] = [await begin('charged'), await begin('released')];
        await begin('open');
        await ledger.settle({ ...charged, costE8: 30n });
        await ledger.release(released);
        await ship();
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        const repeat = (key: string) =>
          ledger.reserve(reserveRequest(payer, 1n, { intent: { key, body: 'body', requestId: 'req_2' } }));
        const { rid, intent } = charged;
        assert.deepEqual(await repeat('charged'), {
          outcome: 'intent_charged',
          requestId: intent.requestId,
          rid,
          chargedE8: 30n,
        });
        assert.deepEqual(await repeat('released'), { outcome: 'reserved', heldE8: 1n });
        assert.deepEqual(await repeat('open'), { outcome: 'reserved', heldE8: 1n });
      });

      it('returns the holds of calls that were open to their accounts', async () => {
        const payer = await fund(1_000n);
        await ledger.reserve(reserveRequest(payer, 600n));
        await ship();
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        assert.equal((await ledger.readAccount(payer.accountId))?.availableE8, 1_000n);
      });

      it('restores the holds without a deadline that plugins report, except those that have a closing entry', async () => {
        const payer = await fund(1_000n);
        const [open, closed] = [newId(), newId()];
        await ledger.reserve(reserveRequest(payer, 300n, { rid: open, lifetimeMs: undefined, facts: '' }));
        await ledger.reserve(reserveRequest(payer, 200n, { rid: closed, lifetimeMs: undefined, facts: '' }));
        await ledger.settle({ ...payer, rid: closed, costE8: 150n, record: '' });
        await ship();
        const unregister = registerHoldSource(async (_, accountIds) => {
          assert.ok(accountIds.includes(payer.accountId));
          return [open, closed].map((rid) => ({ ...payer, rid, amountE8: 300n }));
        });
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet }).finally(unregister);
        assertIncludes(await ledger.readAccount(payer.accountId), { availableE8: 550n, heldE8: 300n });
        assertIncludes(await ledger.readKey(payer), { spentE8: 150n, heldE8: 300n });
        const answer = await ledger.settle({ ...payer, rid: open, costE8: 100n, record: '' });
        assert.deepEqual(answer, { outcome: 'settled', chargedE8: 100n, shortfallE8: 0n });
      });

      it('restores the settings and the status of accounts and keys', async () => {
        const payer = await fund(10n);
        await knex('accounts').where({ id: payer.accountId }).update({ status: 'frozen', markup: 'partner' });
        await knex('api_keys')
          .where({ id: payer.keyId })
          .update({ status: 'revoked', rev: 3, name: 'new', allowed_models: JSON.stringify(['model-a']) });
        await ship();
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        assert.equal((await ledger.readAccount(payer.accountId))?.status, 'frozen');
        const key = await ledger.readKey(payer);
        assert.equal(key?.status, 'revoked');
        assert.deepEqual(
          key?.settings,
          settingsOf({ rev: 3, name: 'new', allowedModels: ['model-a'], markup: 'partner' }),
        );
      });

      it('sends, once, credits that Postgres has and the ledger never received', async () => {
        const payer = await fund(10n);
        await insertCredit(knex, payer.accountId, newId(), 90n);
        const sent = await resendCredits({ ledger, database: knex, log: quiet });
        assert.equal(sent, 2, 'also the one whose entry is only on its way');
        assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 100n);
        ledger = await lose(ledger);
        await ensureReady({ ledger, database: knex, log: quiet });
        assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 100n);
        await ship();
        assert.equal((await readChain(knex, payer.accountId)).length, 2);
        assert.equal(await resendCredits({ ledger, database: knex, log: quiet }), 0);
      });

      it('drops a debit that the ledger refuses, so that it is not charged later', async () => {
        const payer = await fund(10n);
        const debit = newId();
        await insertCredit(knex, payer.accountId, debit, -50n);
        await resendCredits({ ledger, database: knex, log: quiet });
        assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 10n);
        assert.equal(await knex('credits').where({ id: debit }).first(), undefined);
        const audit = await knex('audit_log').where({ action: 'account.credit.refused' });
        assert.equal(audit.filter(({ before }) => before.creditId === debit).length, 1);
      });

      it('runs once if two processes start simultaneously', async () => {
        const payer = await fund(1_000n);
        await ship();
        ledger = await lose(ledger);
        let opened = 0;
        const counted = instead(ledger, {
          open: (begun?: string) => {
            opened += 1;
            return ledger.open(begun);
          },
        });
        await Promise.all([1, 2].map(() => recover({ ledger: counted, database: knex, log: quiet })));
        assert.equal(opened, 1);
        await spend(payer, 10n);
        await ship();
        assert.equal((await readChain(knex, payer.accountId)).length, 2);
      });
    });
  }
}

describe('recovery of a ledger that is lost during the recovery', () => {
  it('starts again after the loss, and does not open the ledger while accounts are missing', async function () {
    this.timeout(60_000);
    const test = await DATABASES[0]?.open();
    assert.ok(test !== undefined);
    redisUrl = await emptyRedis();
    const ledger = await openRedis();
    const payer = newPayer();
    await insertPayer(test.database, payer);
    await insertCredit(test.database, payer.accountId, newId(), 70n);
    const other = new Redis(redisUrl);
    let losses = 0;
    const losing = instead(ledger, {
      open: async (begun?: string) => {
        losses += 1;
        if (losses <= 2) await other.flushall();
        const outcome = await ledger.open(begun);
        assert.equal(await ledger.isReady(), losses > 2);
        return outcome;
      },
    });
    await recover({ ledger: losing, database: test.database, log: quiet });
    assert.equal(losses, 3);
    assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 70n);
    other.disconnect();
    await ledger.close();
    await test.close();
  });
});

describe('recovery while another recovery is suspended', () => {
  it('replaces the suspended recovery after it has been idle for too long', async function () {
    this.timeout(60_000);
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    const test = await postgres.open();
    const payer = newPayer();
    await insertPayer(test.database, payer);
    await insertCredit(test.database, payer.accountId, newId(), 70n);
    const ledger = new MemoryLedger();
    const { connection } = test.database.client.config;
    const impatient = knexOf({
      client: 'pg',
      connection: { ...connection, idle_in_transaction_session_timeout: 300 },
    });
    let isStill = false;
    const standing = instead(ledger, {
      restore: () => {
        isStill = true;
        return new Promise<void>(() => undefined);
      },
    });
    void recover({ ledger: standing, database: impatient, log: quiet }).catch(() => undefined);
    await until('it stands still', () => isStill);
    await recover({ ledger, database: test.database, log: quiet });
    assertIncludes(await ledger.readAccount(payer.accountId), { postedE8: 70n });
    await test.close();
  });
});

describe('recovery of a ledger with a credit in its outbox', () => {
  let test: TestDatabase;
  let ledger: Ledger;
  let payer: Payer;
  let other: Redis;

  beforeEach(async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    redisUrl = await emptyRedis();
    other = new Redis(redisUrl);
    ledger = await openRedis();
    await ledger.open();
    payer = newPayer();
    const credit = { accountId: payer.accountId, rid: newId(), amountE8: 70n };
    await insertPayer(test.database, payer);
    await insertCredit(test.database, credit.accountId, credit.rid, credit.amountE8);
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.credit(credit);
  });
  afterEach(async () => {
    other.disconnect();
    await ledger.close();
    await test.close();
  });

  it('waits until a shipper has written the entries that it had read before the loss', async function () {
    this.timeout(60_000);
    let recovered: Promise<void> | undefined;
    const losing = instead(ledger, {
      readOutbox: async (...args: Parameters<Ledger['readOutbox']>) => {
        const heads = await ledger.readOutbox(...args);
        await other.flushall();
        recovered = recover({ ledger, database: test.database, log: quiet });
        await Promise.race([recovered, new Promise((wake) => setTimeout(wake, 300))]);
        return heads;
      },
    });
    await shipShards({ ledger: losing, database: test.database, log: quiet }, [shardOf(payer.accountId)]);
    await recovered;
    assertIncludes(await ledger.readAccount(payer.accountId), { postedE8: 70n, seq: 1 });
    assert.deepEqual((await ledger.readOutbox(ALL_SHARDS, 1)).size, 0, 'the credit is not given a second time');
  });

  it('ships the outbox before it reads Postgres', async function () {
    this.timeout(60_000);
    const lost = (await other.keys('{s*')).filter((key) => !key.endsWith(':ob'));
    await other.del('keyindex', ...lost);
    await ensureReady({ ledger, database: test.database, log: quiet });
    assertIncludes(await ledger.readAccount(payer.accountId), { postedE8: 70n, seq: 1 });
    assert.equal((await readChain(test.database, payer.accountId)).length, 1);
  });
});
