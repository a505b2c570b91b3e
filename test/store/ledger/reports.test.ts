import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId, timeOfId } from '../../../core/base/ids';
import type { ReportedCall } from '../../../core/ledger/allowances/reported-calls';
import type { Payer } from '../../../core/ledger/ledger';
import { insertUsage, writtenCalls } from '../../../core/ledger/outbox/rows';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { ensureReady } from '../../../core/ledger/recovery';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { compareRecords } from '../../../core/ledger/verify/records';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { keyRequest, newPayer, reserveRequest, usageRecord } from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';
import { ReportingLedger, reportEntry, reportedCall } from './report-entries';

const FUNDED = { seq: 1, postedE8: 1_000n };
const MADE = {
  startedAtMs: 1_790_000_000_123,
  upstream: 'first',
  model: 'model-a',
  ms: 5,
  isReported: true,
  costE14: '0',
};

for (const { name, open } of DATABASES) {
  describe(`the report of an allowance (money that a node holds in advance) on ${name}`, function () {
    this.timeout(60_000);
    let test: TestDatabase;
    let database: Knex;
    let ledger: ReportingLedger;

    before(async () => {
      test = await open();
      database = test.database;
    });
    after(() => test.close());
    beforeEach(async () => {
      ledger = new ReportingLedger();
      await ledger.open();
    });

    const fund = async (): Promise<Payer> => {
      const payer = newPayer();
      const credit = newId();
      await insertPayer(database, payer);
      await insertCredit(database, payer.accountId, credit, 1_000n);
      await ledger.setAccount(payer.accountId, 'active');
      await ledger.setKey(keyRequest(payer));
      await ledger.credit({ accountId: payer.accountId, rid: credit, amountE8: 1_000n });
      await ship();
      return payer;
    };
    const ship = (more: Partial<Parameters<typeof shipShards>[0]> = {}) =>
      shipShards({ ledger, database, log: quiet, ...more }, ALL_SHARDS);
    const report = async (payer: Payer, calls: readonly ReportedCall[], end = FUNDED) => {
      const entry = reportEntry(payer, calls, end);
      ledger.waiting = [entry];
      await ship();
      return entry;
    };
    const entriesOf = ({ accountId }: Payer) =>
      database('ledger_entries').where({ account_id: accountId }).orderBy('seq');
    const recordsOf = ({ accountId }: Payer) =>
      database('usage_records').where({ account_id: accountId }).orderBy('request_id');
    const found = async ({ accountId }: Payer) =>
      (await compareRecords(database, [accountId], 1)).map(({ invariant, rid }) => [invariant, rid]);

    it('becomes one entry, and one usage record for each of its calls', async () => {
      const payer = await fund();
      const calls = [
        reportedCall(payer, 100n, { record: { made: [MADE, { ...MADE, costE14: '12345678901234567890' }] } }),
        reportedCall(payer, 20n, { shortfallE8: 5n }),
        reportedCall(payer, 0n, { ending: 'released', record: { billing: 'released' } }),
        reportedCall(payer, 0n, { ending: 'expired', record: { billing: 'expired' } }),
        reportedCall(payer, 3n, { record: '' }),
      ];
      const { rid } = await report(payer, calls);
      const [, entry] = await entriesOf(payer);
      assert.deepEqual([entry.rid, entry.kind, entry.of_call, entry.calls], [rid, 'charge', true, 4]);
      assert.deepEqual([entry.amount_e8, entry.shortfall_e8, entry.posted_e8], [-123n, 5n, 877n]);
      assert.equal(entry.created_at.getTime(), timeOfId(rid));
      const records = await recordsOf(payer);
      assert.deepEqual(
        records.map((row) => [row.rid, row.report_id, row.cost_e8, row.billing]),
        calls.slice(0, 4).map((call, at) => {
          return [call.rid, rid, call.costE8, ['actual', 'actual', 'released', 'expired'][at]];
        }),
      );
      const attempts = await database('upstream_attempts').where({ account_id: payer.accountId }).orderBy('number');
      assert.deepEqual(
        attempts.map((row) => [row.request_id, row.number, row.credential, row.cause, row.cost_e14]),
        [
          [records[0].request_id, 1, 'first', 'answered', '0'],
          [records[0].request_id, 2, 'first', 'answered', '12345678901234567890'],
        ],
      );
      assert.equal(attempts[0].created_at.getTime(), MADE.startedAtMs);
      const [spent] = await database('scope_spending').where({ scope: `k:${payer.keyId}` });
      assert.equal(spent.spent_e8, 123n);
    });

    it('is written once even if it is shipped again together with new reports', async () => {
      const payer = await fund();
      const first = await report(payer, [reportedCall(payer, 10n), reportedCall(payer, 20n)]);
      const second = reportEntry(payer, [reportedCall(payer, 30n)], first);
      ledger.waiting = [first, second];
      await ship();
      assert.equal((await readChain(database, payer.accountId)).length, 3);
      assert.equal((await recordsOf(payer)).length, 3);
      assert.deepEqual(await found(payer), []);
    });

    it('is announced as written, together with its calls, once Postgres has them', async () => {
      const payer = await fund();
      const calls = [reportedCall(payer, 1n), reportedCall(payer, 2n)];
      const told: string[] = [];
      const entry = reportEntry(payer, calls, FUNDED);
      ledger.waiting = [entry];
      await ship({ onWritten: (rids) => told.push(...rids) });
      assert.deepEqual(told, [entry.rid, ...calls.map(({ rid }) => rid)]);
    });

    it('loses only a record that Postgres rejects, and verification names that record', async () => {
      const payer = await fund();
      const calls = [
        ...[reportedCall(payer, 1n), reportedCall(payer, 0n, { record: { path: '\u0000' } }), reportedCall(payer, 2n)],
        ...[reportedCall(payer, 3n, { record: 'not JSON' }), reportedCall(payer, 4n)],
      ];
      const { rid } = await report(payer, calls);
      assert.deepEqual(
        (await recordsOf(payer)).map((row) => row.rid),
        [calls[0]?.rid, calls[2]?.rid, calls[4]?.rid],
      );
      assert.equal((await readChain(database, payer.accountId)).length, 2);
      assert.deepEqual(await found(payer), [['record_missing', rid]]);
    });

    it('writes every field of a record as an insert does', async () => {
      const [one, other] = [await fund(), await fund()];
      const owners = { teamId: newId(), memberId: newId() };
      const record = (payer: Payer) =>
        usageRecord(payer, {
          ...{ modelRequested: 'Möđel 🚀 "x"', firstTokenMs: undefined, inputTokens: 2 ** 53 - 1, outputTokens: 0 },
          ...{
            passes: [{ model: 'ä', input: 1 }],
            flags: ['unknown'],
            excessE8: '900719925474099100',
            upstreamCostE8: '5',
          },
          ...{ sessionId: 's', agentId: 'a', calls: 3, rollout: 'r', rolloutStage: 1, rolloutGroup: 'control' },
          ...{ endUserId: 'u', ...owners, tags: { customer: '4711', quote: '"' } },
          routing: { candidates: [], of: 2, attempts: [], intent: { key: 'k', body: 'b' } },
        });
      const call = reportedCall(one, 5n, { record: JSON.stringify(record(one)) });
      const statements: string[] = [];
      database.on('query', ({ sql }: { sql: string }) => statements.push(sql));
      await report(one, [call]);
      assert.equal(
        statements.some((sql) => sql.includes('INSERT INTO usage_records')),
        name === 'PGlite',
      );
      await insertUsage(database, [{ record: JSON.stringify(record(other)), rid: newId(), costE8: 5n }]);
      const own = new Set(['request_id', 'rid', 'report_id', 'account_id', 'key_id']);
      const shared = (row: object) => Object.fromEntries(Object.entries(row).filter(([column]) => !own.has(column)));
      const [[copied], [inserted]] = [await recordsOf(one), await recordsOf(other)];
      assert.deepEqual(shared(copied), shared(inserted));
      const excess = await database('accounts').whereIn('id', [one.accountId, other.accountId]).pluck('excess_e8');
      const ofKeys = await database('api_keys').whereIn('id', [one.keyId, other.keyId]).pluck('excess_e8');
      assert.deepEqual([...excess, ...ofKeys], Array(4).fill(9_007_199_254_740_991n));
    });

    it('adds no excess cost to the account and the key for a call whose usage report is suspect', async () => {
      const payer = await fund();
      const excess = (excessE8: string, flags: readonly string[]) =>
        reportedCall(payer, 1n, { record: { excessE8, flags } });
      const calls = [excess('3', []), excess('4', ['unknown']), excess('5', ['unpriced']), excess('50', ['suspect'])];
      await report(payer, calls);
      const [account] = await database('accounts').where({ id: payer.accountId });
      const [key] = await database('api_keys').where({ id: payer.keyId });
      assert.deepEqual([account.excess_e8, key.excess_e8], [12n, 12n]);
    });

    it('lowers the costs of its last calls by the amount that the real balance does not cover', async () => {
      const payer = await fund();
      const first = await report(payer, [reportedCall(payer, 900n)]);
      const calls = [reportedCall(payer, 60n), reportedCall(payer, 70n), reportedCall(payer, 30n)];
      ledger.waiting = [reportEntry(payer, calls, FUNDED)];
      await ship({ isRecovery: true });
      const chain = await readChain(database, payer.accountId);
      assert.deepEqual([chain[1]?.rid, chain[2]?.amount, chain[2]?.posted], [first.rid, -100n, 0n]);
      const [, , entry] = await entriesOf(payer);
      assert.equal(entry.shortfall_e8, 60n);
      assert.deepEqual(
        (await recordsOf(payer)).map((row) => row.cost_e8),
        [900n, 60n, 40n, 0n],
      );
      assert.deepEqual(await found(payer), []);
    });

    it('shows, as entries do, which reservations are closed', async () => {
      const payer = await fund();
      const own = reserveRequest(payer, 1n, { facts: '' });
      await ledger.reserve(own);
      await ledger.release({ ...payer, rid: own.rid, record: '' });
      await ship();
      const call = reportedCall(payer, 1n);
      const { rid: reportId } = await report(payer, [call], { seq: 2, postedE8: 1_000n });
      const { accountId } = payer;
      const asked = [call.rid, own.rid, newId()].map((rid) => ({ rid, accountId }));
      assert.deepEqual(await writtenCalls(database, asked), new Set([call.rid, own.rid]));
      assert.deepEqual(await writtenCalls(database, [{ rid: call.rid, accountId: newId() }]), new Set());
      assert.deepEqual(await writtenCalls(database, [{ rid: reportId, accountId }]), new Set([reportId]));
    });

    it('is found by verification if it disagrees with its records or with another entry', async () => {
      const rows: readonly (readonly [string, (payer: Payer, id: string, paid: string, free: string) => unknown])[] = [
        ['record_missing', (_payer, _id, _paid, free) => database('usage_records').where({ rid: free }).delete()],
        [
          'record_differs',
          (_payer, _id, paid) => database('usage_records').where({ rid: paid }).update({ cost_e8: 11 }),
        ],
        ['record_without_entry', (_payer, id) => database('ledger_entries').where({ rid: id }).delete()],
        [
          'closed_twice',
          async (_payer, id, paid) => {
            const [entry] = await database('ledger_entries').where({ rid: id });
            const own = { rid: paid, seq: 3, calls: null, created_at: new Date(timeOfId(paid)) };
            await database('ledger_entries').insert({ ...entry, ...own });
          },
        ],
      ];
      for (const [invariant, by] of rows) {
        const payer = await fund();
        const [paid, free] = [reportedCall(payer, 10n), reportedCall(payer, 0n)];
        const { rid } = await report(payer, [paid, free]);
        assert.deepEqual(await found(payer), []);
        await by(payer, rid, paid.rid, free.rid);
        assert.deepEqual(await found(payer), [[invariant, invariant === 'closed_twice' ? paid.rid : rid]]);
      }
    });

    it('is restored by a recovery with the Idempotency-Keys of its calls, and not as a reservation', async () => {
      const payer = await fund();
      const intent = { key: 'key', body: 'body' };
      const routing = { candidates: [], of: 1, attempts: [], clientRetry: undefined, intent };
      const call = reportedCall(payer, 10n, { record: { requestId: 'req_paid', routing } });
      const { rid: reportId } = await report(payer, [call, reportedCall(payer, 5n)]);
      const later = new ReportingLedger();
      await ensureReady({ ledger: later, database, log: quiet });
      assert.equal((await later.readAccount(payer.accountId))?.availableE8, 985n);
      const again = { ...reserveRequest(payer, 1n), intent: { ...intent, requestId: 'req_again' } };
      assert.deepEqual(await later.reserve(again), {
        outcome: 'intent_charged',
        requestId: 'req_paid',
        rid: call.rid,
        chargedE8: 10n,
      });
      const settled = await later.settle({ ...payer, rid: reportId, costE8: 1n, record: '' });
      assert.equal(settled.outcome, 'unknown_reservation');
    });
  });
}
