import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { v7 } from 'uuid';
import { pushCredit } from '../../../core/accounts/credits';
import type { RecordedAttempt } from '../../../core/catalog/attempt-fields';
import type { OutboxEntry, Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { resendCredits } from '../../../core/ledger/outbox/credits';
import { keepPartitions } from '../../../core/ledger/outbox/partitions';
import { insertEntries, insertUsage } from '../../../core/ledger/outbox/rows';
import { compareCredits, compareRecords } from '../../../core/ledger/verify/records';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { newPayer, usageRecord } from './ledger-fixture';
import { readChain } from './ledger-rows';

/** Makes the entry of a call that began at this time. */
function entryAt(payer: Payer, time: string, seq: number, amountE8: bigint, postedE8: bigint): OutboxEntry {
  const msecs = Date.parse(time);
  const kind = amountE8 > 0n ? 'credit' : 'charge';
  const rid = v7({ msecs });
  const record = JSON.stringify(usageRecord(payer, { createdAt: new Date(msecs).toISOString() }));
  return { ...payer, id: `${msecs}-${seq}`, kind, rid, seq, amountE8, postedE8, shortfallE8: 0n, record };
}

for (const { name, open } of DATABASES) {
  describe(`tables partitioned by month on ${name}`, () => {
    let test: TestDatabase;
    let database: Knex;

    before(async function () {
      this.timeout(60_000);
      test = await open();
      database = test.database;
    });
    after(() => test.close());

    const write = async (...entries: readonly OutboxEntry[]) => {
      const { steppedBack } = await insertEntries(database, entries);
      const usage = entries.filter(({ kind }) => kind === 'charge');
      const rows = usage.map(({ record = '', rid, amountE8 }) => ({ record, rid, costE8: -amountE8 }));
      await insertUsage(database, rows);
      return steppedBack;
    };
    const partitionOf = async (table: string, rid: string) => {
      const { rows } = await database.raw('SELECT tableoid::regclass::text AS name FROM ?? WHERE rid = ?', [
        table,
        rid,
      ]);
      return String(rows[0]?.name);
    };
    const keep = (now: string, options: { usageMonths?: number; entryMonths?: number } = {}) =>
      keepPartitions({ database, log: quiet, ...options }, new Date(now));

    it('contain rows in the partition of their month, created in advance, in any order of arrival', async () => {
      const payer = newPayer();
      await keep('2027-01-15T00:00:00Z');
      const credit = entryAt(payer, '2026-01-02T00:00:00Z', 1, 100n, 100n);
      const later = entryAt(payer, '2027-02-28T23:59:59.999Z', 2, -10n, 90n);
      const last = entryAt(payer, '2027-03-01T00:00:00.000Z', 3, -10n, 80n);
      const nobody = entryAt(payer, '2027-09-01T00:00:00Z', 4, -10n, 70n);
      await write(credit, later, last, nobody);
      assert.match(await partitionOf('ledger_entries', credit.rid), /^ledger_entries_to_/);
      assert.equal(await partitionOf('ledger_entries', later.rid), 'ledger_entries_2027_02');
      assert.equal(await partitionOf('usage_records', last.rid), 'usage_records_2027_03');
      assert.equal(await partitionOf('usage_records', nobody.rid), 'usage_records_other');
      assert.equal((await readChain(database, payer.accountId)).length, 4);
    });

    it('move rows from the default partition to the partition of a month that was created late', async () => {
      const payer = newPayer();
      const early = entryAt(payer, '2028-05-05T00:00:00Z', 1, -10n, 90n);
      await write(early);
      assert.equal(await partitionOf('usage_records', early.rid), 'usage_records_other');
      await keep('2028-04-01T00:00:00Z');
      assert.equal(await partitionOf('usage_records', early.rid), 'usage_records_2028_05');
      assert.equal(await partitionOf('ledger_entries', early.rid), 'ledger_entries_2028_05');
      assert.deepEqual(await keep('2028-04-01T00:00:00Z'), [], 'nothing is left to do');
    });

    it('drop old usage records month by month, but keep entries of the ledger', async () => {
      const payer = newPayer();
      for (const month of ['2027-01', '2027-02', '2027-03', '2027-04']) await keep(`${month}-01T00:00:00Z`);
      const times = ['2027-01-31T23:00:00Z', '2027-02-01T00:00:00Z', '2027-03-01T00:00:00Z'];
      const entries = times.map((time, index) => entryAt(payer, time, index + 1, -1n, -1n - BigInt(index)));
      await write(...entries);
      const done = await keep('2027-04-01T00:00:00Z', { usageMonths: 2 });
      assert.ok(done.includes('usage_records_2027_01'), String(done));
      const left = await database('usage_records').where({ account_id: payer.accountId }).orderBy('created_at');
      assert.deepEqual(
        left.map(({ rid }) => rid),
        entries.slice(1).map(({ rid }) => rid),
      );
      assert.equal((await database('ledger_entries').where({ account_id: payer.accountId })).length, 3);
    });

    it("record the point at which each account's chain of entries continues after old entries are dropped", async () => {
      const payer = newPayer();
      for (const month of ['2027-01', '2027-04']) await keep(`${month}-01T00:00:00Z`);
      await write(
        entryAt(payer, '2027-01-01T00:00:00Z', 1, 100n, 100n),
        entryAt(payer, '2027-01-02T00:00:00Z', 2, -30n, 70n),
        entryAt(payer, '2027-03-02T00:00:00Z', 3, -30n, 40n),
      );
      await keep('2027-04-01T00:00:00Z', { entryMonths: 1 });
      const left = await database('ledger_entries').where({ account_id: payer.accountId });
      assert.deepEqual(
        left.map(({ seq }) => seq),
        [3n],
      );
      const checkpoints = await database('ledger_checkpoints').where({ account_id: payer.accountId });
      assert.deepEqual(
        checkpoints.map((row) => [row.seq, row.posted_e8]),
        [[2n, 70n]],
      );
    });

    it('do not cause a credit to be sent again after its entry was dropped', async () => {
      const payer = newPayer();
      for (const month of ['2027-01', '2027-04']) await keep(`${month}-01T00:00:00Z`);
      const credit = entryAt(payer, '2027-01-01T00:00:00Z', 1, 100n, 100n);
      await database('accounts').insert({ id: payer.accountId, name: 'payer' });
      await database('credits').insert({
        id: credit.rid,
        account_id: payer.accountId,
        amount_e8: 100n,
        idempotency_key: 'once',
        created_at: new Date('2026-01-01T00:00:00Z'),
      });
      await write(credit);
      await keep('2027-04-01T00:00:00Z', { entryMonths: 1 });
      const ledger = new MemoryLedger();
      assert.equal(await resendCredits({ ledger, database, log: quiet }), 0);
      assert.deepEqual(await compareCredits(database, [payer.accountId]), []);
      const repeated = await pushCredit({ database, ledger, calls: ledger }, credit.rid, 'test');
      assert.deepEqual(repeated, { outcome: 'credited', postedE8: 100n });
    });

    it('let verification report missing rows, but not rows whose counterpart was dropped', async () => {
      const payer = newPayer();
      for (const month of ['2029-01', '2029-04']) await keep(`${month}-01T00:00:00Z`);
      const times = ['2029-01-15T00:00:00Z', '2029-02-01T00:30:00Z', '2029-02-15T00:00:00Z', '2029-03-15T00:00:00Z'];
      await write(...times.map((time, index) => entryAt(payer, time, index + 1, -1n, -1n - BigInt(index))));
      const compare = async () => {
        const found = await compareRecords(database, [payer.accountId], 100, Date.parse('2029-04-02T00:00:00Z'));
        return found.map(({ invariant, seq }) => `${invariant} ${seq}`);
      };
      assert.deepEqual(await compare(), []);
      await keep('2029-04-01T00:00:00Z', { usageMonths: 2 });
      assert.deepEqual(await compare(), []);
      await keep('2029-04-01T00:00:00Z', { entryMonths: 1 });
      assert.deepEqual(await compare(), []);
      await database('usage_records').where({ account_id: payer.accountId }).delete();
      assert.deepEqual(await compare(), ['record_missing 4']);
    });

    it('keep attempts at upstreams as long as usage records, and contain each attempt once', async () => {
      const payer = newPayer();
      await keep('2030-01-01T00:00:00Z');
      const startedAtMs = Date.parse('2030-01-05T00:00:00Z');
      const asked = { upstream: 'acme', model: 'large', ms: 5, isReported: true, costE14: '123456789012345678901' };
      const made: readonly RecordedAttempt[] = [
        { ...asked, startedAtMs, cause: 'failed', outcome: 'timeout' },
        { ...asked, startedAtMs: startedAtMs + 1_000 },
      ];
      const createdAt = '2030-01-05T00:00:00.000Z';
      const record = JSON.stringify({ ...usageRecord(payer, { createdAt }), made });
      const row = { record, rid: v7({ msecs: Date.parse(createdAt) }), costE8: 5n };
      await insertUsage(database, [row]);
      await insertUsage(database, [row]);
      const attempts = () => database('upstream_attempts').where({ account_id: payer.accountId }).orderBy('number');
      assert.deepEqual(
        (await attempts()).map((each) => [each.number, each.cause, each.cost_e14]),
        [
          [1, 'failed', '123456789012345678901'],
          [2, 'answered', '123456789012345678901'],
        ],
      );
      await keep('2030-02-01T00:00:00Z', { usageMonths: 1 });
      assert.equal((await attempts()).length, 2);
      await keep('2030-03-01T00:00:00Z', { usageMonths: 1 });
      assert.deepEqual(await attempts(), []);
    });

    it('put the last moment of a year and the first of the next into their own months, whichever was created first', async () => {
      const payer = newPayer();
      await keep('2031-12-31T23:59:59.999Z');
      const [last, first] = ['2031-12-31T23:59:59.999Z', '2032-01-01T00:00:00Z'].map((time, index) =>
        entryAt(payer, time, index + 1, -1n, -1n - BigInt(index)),
      ) as [OutboxEntry, OutboxEntry];
      await write(last, first);
      assert.equal(await partitionOf('ledger_entries', last.rid), 'ledger_entries_2031_12');
      assert.equal(await partitionOf('ledger_entries', first.rid), 'ledger_entries_2032_01');
      assert.deepEqual(await keep('2032-01-01T00:00:00Z'), [
        'ledger_entries_2032_03',
        'usage_records_2032_03',
        'upstream_attempts_2032_03',
      ]);
      await keep('2032-01-31T23:59:59.999Z', { usageMonths: 1 });
      assert.equal(await partitionOf('usage_records', last.rid), 'usage_records_2031_12');
      await keep('2032-02-01T00:00:00Z', { usageMonths: 1 });
      assert.equal((await database('usage_records').where({ rid: last.rid })).length, 0);
      assert.equal(await partitionOf('usage_records', first.rid), 'usage_records_2032_01');
    });
  });
}
