import assert from 'node:assert/strict';
import { compareRecords } from '../../../core/ledger/verify/records';
import { DATABASES } from '../../support/databases';
import { newPayer } from './ledger-fixture';
import { insertPayer } from './ledger-rows';

const MANY = 33_000;

const ENTRIES = `
  INSERT INTO ledger_entries
    (account_id, seq, rid, kind, amount_e8, posted_e8, shortfall_e8, created_at, written_at, of_call)
  SELECT :accountId::uuid, each, md5(each::text)::uuid, 'charge', -100, 0, 0, now() - each * interval '20 ms', now(), true
  FROM generate_series(:first::int, :last::int) AS each`;

const RECORDS = `
  INSERT INTO usage_records
    (request_id, created_at, account_id, key_id, protocol, path, attempts, fallback, stream, status, source, cost_e8, billing,
     response_time_ms, config_revision, calls, rid)
  SELECT 'req_' || each, now() - each * interval '20 ms', :accountId::uuid, :keyId::uuid, 'messages', '/v1/messages', 1, false,
         false, 200, 'provider', 100, 'actual', 5, 'x', 1, md5(each::text)::uuid
  FROM generate_series(1, :last::int) AS each`;

describe('verification of many records', function () {
  this.timeout(60_000);

  it('ends even if Postgres has statistics from when each account had one entry', async () => {
    const postgres = DATABASES.find(({ name }) => name === 'Postgres');
    assert.ok(postgres !== undefined);
    const { database, close } = await postgres.open();
    try {
      const payers = Array.from({ length: 4 }, newPayer);
      for (const payer of payers) {
        await insertPayer(database, payer);
        await database.raw(ENTRIES, { ...payer, first: 1, last: 1 });
      }
      await database.raw('ANALYZE ledger_entries');
      const [busy] = payers as [(typeof payers)[number]];
      await database.raw(ENTRIES, { ...busy, first: 2, last: MANY });
      await database.raw(RECORDS, { ...busy, last: MANY });
      await database('usage_records').where({ request_id: 'req_7' }).delete();
      const found = await compareRecords(database, [busy.accountId], 1);
      assert.deepEqual(
        found.map(({ invariant, seq }) => [invariant, seq]),
        [['record_missing', 7]],
      );
    } finally {
      await close();
    }
  });
});
