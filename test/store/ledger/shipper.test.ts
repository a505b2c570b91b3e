import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { newId, timeOfId } from '../../../core/base/ids';
import type { Ledger, Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { insertEntries } from '../../../core/ledger/outbox/rows';
import { LOCK_SPACE, shipShards } from '../../../core/ledger/outbox/ship';
import { startShipper } from '../../../core/ledger/outbox/shipper';
import { dayNumberOf } from '../../../core/ledger/scopes';
import { ALL_SHARDS, shardOf } from '../../../core/ledger/shard';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { rejection } from '../../support/rejection';
import { until } from '../../support/until';
import {
  fundedPayer,
  holding,
  instead,
  keyRequest,
  newPayer,
  reserveRequest,
  settingsOf,
  usageRecord,
} from './ledger-fixture';
import { readChain, readSums } from './ledger-rows';
import { reportEntry, reportedCall } from './report-entries';

for (const { name, open } of DATABASES) {
  describe(`the outbox shipper on ${name}`, () => {
    let test: TestDatabase;
    let database: Knex;
    let ledger: MemoryLedger;

    before(async function () {
      this.timeout(60_000);
      test = await open();
      database = test.database;
    });
    after(() => test.close());
    beforeEach(async () => {
      ledger = new MemoryLedger();
      await ledger.open();
    });

    const spend = async (payer: Payer, costE8: bigint, changes: Parameters<typeof usageRecord>[1] = {}) => {
      const request = reserveRequest(payer, costE8);
      await ledger.reserve(request);
      const record = usageRecord(payer, changes);
      await ledger.settle({ ...payer, rid: request.rid, costE8, record: JSON.stringify(record) });
      return { rid: request.rid, record };
    };
    const shipAll = (from: Ledger = ledger) => shipShards({ ledger: from, database, log: quiet }, ALL_SHARDS);
    const waiting = async () => (await ledger.readOutbox(ALL_SHARDS, 1)).size;

    it('writes the charge of a call with its record, at the time of the call', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      const { rid, record } = await spend(payer, 300n, { outputTokens: 2 ** 40 });
      await shipAll();
      const [, entry] = await database('ledger_entries').where({ account_id: payer.accountId }).orderBy('seq');
      assert.equal(entry.rid, rid);
      assert.equal(entry.created_at.getTime(), timeOfId(rid));
      assert.equal(String(entry.amount_e8), '-300');
      const [row, ...others] = await database('usage_records').where({ account_id: payer.accountId });
      assert.deepEqual(others, []);
      assert.equal(row.request_id, record.requestId);
      assert.equal(row.created_at.toISOString(), record.createdAt);
      assert.deepEqual([row.rid, String(row.cost_e8), row.billing], [rid, '300', 'actual']);
      assert.deepEqual(
        [String(row.output_tokens), row.cache_creation_tokens, row.stream],
        [String(2 ** 40), null, true],
      );
      assert.equal(await waiting(), 0);
    });

    it('writes credits, releases and expiries; an expiry has the record of its reserve, billed as expired', async () => {
      const { payer, request: expiring } = await holding(ledger, 1_000n, 10n, { lifetimeMs: 0 });
      await ledger.expire(payer, expiring.rid);
      const sandbox = reserveRequest(payer, 10n, { facts: '', lifetimeMs: undefined });
      await ledger.reserve(sandbox);
      await ledger.release({ ...payer, rid: sandbox.rid, record: '' });
      await shipAll();
      const chain = await readChain(database, payer.accountId);
      assert.deepEqual(
        chain.map(({ kind }) => kind),
        ['credit', 'expire', 'release'],
      );
      const usage = await database('usage_records').where({ account_id: payer.accountId });
      assert.deepEqual(
        usage.map(({ rid, billing }) => [rid, billing]),
        [[expiring.rid, 'expired']],
      );
    });

    it('announces a batch of entries as written only if Postgres had none of them before', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      await spend(payer, 10n);
      const told: (readonly string[])[] = [];
      const onWritten = (rids: readonly string[]) => void told.push(rids);
      const forgetful = instead(ledger, { trimOutbox: async () => undefined });
      await shipShards({ ledger: forgetful, database, log: quiet, onWritten }, [shardOf(payer.accountId)]);
      const written = (await readChain(database, payer.accountId)).map(({ rid }) => rid);
      assert.deepEqual(told, [written]);
      await spend(payer, 10n);
      await shipShards({ ledger, database, log: quiet, onWritten }, [shardOf(payer.accountId)]);
      assert.equal((await readChain(database, payer.accountId)).length, 3);
      assert.equal(told.length, 1);
    });

    it('writes nothing twice and loses nothing after a crash between COMMIT and trim', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      for (let each = 0; each < 5; each++) await spend(payer, 10n);
      let crashes = 0;
      const crashing = instead(ledger, {
        trimOutbox: async () => {
          crashes += 1;
          throw new Error('crashed');
        },
      });
      assert.equal((await rejection(shipAll(crashing))).message, 'crashed');
      assert.equal(crashes, 1);
      assert.equal((await readChain(database, payer.accountId)).length, 6);
      await shipAll();
      assert.equal((await readChain(database, payer.accountId)).length, 6);
      const usage = await database('usage_records').where({ account_id: payer.accountId });
      assert.equal(usage.length, 5);
      assert.equal(await waiting(), 0);
    });

    it('counts a charge once in its account, team, member and key, even if it is shipped twice', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      const { accountId, keyId } = payer;
      const [teamId, memberId] = [newId(), newId()];
      await spend(payer, 5n);
      await ledger.setKey(keyRequest(payer, { settings: settingsOf({ teamId, memberId }) }));
      await spend(payer, 10n);
      await spend(payer, 20n);
      await shipAll(instead(ledger, { trimOutbox: async () => undefined }));
      await spend(payer, 0n);
      await shipAll();
      const today = new Date().toISOString().slice(0, 10);
      const scopes = [`a:${accountId}`, `t:${teamId}`, `m:${memberId}`, `k:${keyId}`];
      const spent = [35n, 30n, 30n, 35n];
      const expected = Object.fromEntries(scopes.map((scope, at) => [`${scope} ${today}`, spent[at]]));
      assert.deepEqual(await readSums(database, scopes), expected);
      const rows = await database('ledger_entries').where({ account_id: accountId }).orderBy('seq');
      const ofTeam = `t:${teamId} m:${memberId}`;
      assert.deepEqual(
        rows.map((row) => row.scopes),
        [null, null, ofTeam, ofTeam, ofTeam],
      );
    });

    it('counts a charge on the day that its entry names, and otherwise on the day of its entry', async () => {
      const payer = newPayer();
      const id = `${Date.UTC(2026, 2, 1, 23, 59)}-0`;
      const charge = { ...reportEntry(payer, [reportedCall(payer, 10n)], { seq: 0, postedE8: 100n }), id };
      const later = {
        ...reportEntry(payer, [reportedCall(payer, 7n)], charge),
        id,
        day: dayNumberOf(Date.UTC(2026, 2, 2)),
      };
      await insertEntries(database, [charge, later]);
      const scope = `k:${payer.keyId}`;
      const expected = { [`${scope} 2026-03-01`]: 10n, [`${scope} 2026-03-02`]: 7n };
      assert.deepEqual(await readSums(database, [scope]), expected);
    });

    it('never trims an entry that is not committed', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      await spend(payer, 10n);
      let trimmed = false;
      const observed = instead(ledger, {
        trimOutbox: async () => {
          trimmed = true;
        },
      });
      const failing = instead(database, {
        transaction: ((work: (trx: Knex.Transaction) => Promise<unknown>) =>
          database.transaction(async (trx) => {
            await work(trx);
            throw new Error('no commit');
          })) as unknown as Knex['transaction'],
      });
      await rejection(shipShards({ ledger: observed, database: failing, log: quiet }, ALL_SHARDS));
      assert.equal(trimmed, false);
      assert.equal((await readChain(database, payer.accountId)).length, 0);
      await shipAll();
      assert.equal((await readChain(database, payer.accountId)).length, 2);
    });

    it('writes every entry once, even if two shippers ship the same outbox', async () => {
      const payers = await Promise.all(Array.from({ length: 8 }, () => fundedPayer(ledger, 1_000n)));
      const shippers = [1, 2].map(() => startShipper({ ledger, database, log: quiet }));
      for (let round = 0; round < 20; round++) {
        await Promise.all(payers.map((payer) => spend(payer, 10n)));
        for (const payer of payers) for (const shipper of shippers) shipper.nudge(payer.accountId);
        await new Promise((wake) => setImmediate(wake));
      }
      await until('all is shipped', async () => (await waiting()) === 0);
      await Promise.all(shippers.map((shipper) => shipper.stop()));
      for (const payer of payers) assert.equal((await readChain(database, payer.accountId)).length, 21);
      const usage = await database('usage_records').whereIn(
        'account_id',
        payers.map(({ accountId }) => accountId),
      );
      assert.equal(usage.length, 8 * 20);
    });

    it('keeps every entry while the database is down, reports their age, and continues automatically', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      let isDown = true;
      const flaky = instead(database, {
        transaction: ((work: (trx: Knex.Transaction) => Promise<unknown>) =>
          isDown ? Promise.reject(new Error('connection refused')) : database.transaction(work)) as Knex['transaction'],
      });
      const shipper = startShipper({ ledger, database: flaky, log: quiet });
      await until('an entry waits', () => shipper.oldestAgeMs() > 30);
      assert.equal(await waiting(), 1);
      isDown = false;
      await until('all is shipped', async () => (await waiting()) === 0);
      await shipper.stop();
      assert.equal((await readChain(database, payer.accountId)).length, 1);
    });

    it('writes the entry and the other records of the batch even if one usage record cannot be written', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      await spend(payer, 10n);
      for (const record of [
        '{"not": "a record"}',
        'not JSON',
        JSON.stringify(usageRecord(payer, { path: '\u0000' })),
        // Makes a record too large for an index: random text does not compress.
        JSON.stringify(usageRecord(payer, { model: undefined, modelRequested: randomBytes(4_000).toString('base64') })),
      ]) {
        const request = reserveRequest(payer, 10n);
        await ledger.reserve(request);
        await ledger.settle({ ...payer, rid: request.rid, costE8: 10n, record });
      }
      await spend(payer, 10n);
      await shipAll();
      assert.equal((await readChain(database, payer.accountId)).length, 7);
      assert.equal((await database('usage_records').where({ account_id: payer.accountId })).length, 2);
    });
  });
}

describe('the outbox shipper beside another one', () => {
  it('skips the shards that the other shipper is shipping', async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    const { database, close } = await postgres.open();
    const ledger = new MemoryLedger();
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const other = await fundedPayer(ledger, 1_000n);
    const shard = shardOf(payer.accountId);
    const ship = () => shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
    await database.transaction(async (trx) => {
      await trx.raw('SELECT pg_advisory_xact_lock(?, ?)', [LOCK_SPACE, shard]);
      assert.deepEqual(await ship(), [shard]);
      assert.deepEqual([...(await ledger.readOutbox(ALL_SHARDS, 1)).keys()], [shard]);
      assert.equal((await readChain(database, payer.accountId)).length, 0);
      assert.equal((await readChain(database, other.accountId)).length, 1);
    });
    assert.deepEqual(await ship(), []);
    assert.equal((await readChain(database, payer.accountId)).length, 1);
    await close();
  });
});
