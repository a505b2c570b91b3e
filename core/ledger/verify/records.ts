import type { Knex } from 'knex';
import { droppedBefore } from '../outbox/partitions';
import { isCompensated, PATIENCE_MS, type Violation, violation } from './invariants';

/** The length of a day in ms. Usage records are compared one day at a time, so that no statement takes long. */
const DAY_MS = 86_400_000;
/** How many violations are returned for one page of accounts and one day. More would tell the operator nothing new. */
const NAMED = 100;

/**
 * Finds entries that do not match their usage records, and records without an entry. A record belongs to the entry of its allowance's
 * report, or else to that of its reservation.
 *
 * An entry's id contains the time of the entry. A record contains the time when its call arrived. A call arrives at most an hour before its
 * reservation, because a body takes two minutes at most. It arrives at most a day before its report, because no call takes longer.
 *
 * The join is a full join, because Postgres answers it by hashing or sorting, even with outdated statistics. With statistics from a time
 * when each account had one record, Postgres would otherwise scan all records for each entry.
 */
const UNEVEN = `
  WITH wanted AS (SELECT value::uuid AS account_id FROM jsonb_array_elements_text(:accountIds::jsonb)),
  entry AS (
    SELECT account_id, rid AS id, seq, key_id, amount_e8, created_at, coalesce(calls, 1) AS calls FROM ledger_entries
    WHERE account_id IN (SELECT account_id FROM wanted) AND of_call
      AND created_at >= :from::timestamptz - interval '1 hour' AND created_at < :to::timestamptz + interval '1 day'
  ), record AS (
    SELECT account_id, coalesce(report_id, rid) AS id, min(key_id::text) AS key_id, count(*)::int AS records,
           sum(cost_e8) AS cost_e8, min(created_at) AS created_at
    FROM usage_records
    WHERE account_id IN (SELECT account_id FROM wanted) AND rid IS NOT NULL
      AND created_at >= :from::timestamptz - interval '1 day' AND created_at < :to::timestamptz + interval '1 hour'
    GROUP BY 1, 2
  ), uneven AS (
    SELECT account_id, id, entry.seq, coalesce(entry.key_id::text, record.key_id) AS key_id, entry.calls,
           coalesce(record.records, 0) AS records, -entry.amount_e8 AS charged, record.cost_e8,
           EXISTS (SELECT FROM usage_records AS other WHERE other.rid = entry.id AND other.account_id = entry.account_id
             AND other.report_id IS NOT NULL AND other.created_at >= entry.created_at - interval '1 hour'
             AND other.created_at < entry.created_at + interval '1 hour') AS is_reported
    FROM entry FULL JOIN record USING (account_id, id)
    WHERE coalesce(entry.created_at, record.created_at) >= :from::timestamptz
      AND coalesce(entry.created_at, record.created_at) < :to::timestamptz
      AND (entry.seq IS NULL OR record.records IS DISTINCT FROM entry.calls OR record.cost_e8 <> -entry.amount_e8)
  )
  SELECT account_id::text AS "accountId", id::text AS rid, seq::float8 AS seq, key_id AS "keyId", calls, records,
         charged::text AS charged, cost_e8::text AS cost, is_reported AS "isReported"
  FROM uneven WHERE NOT (is_reported AND ${isCompensated('uneven.account_id', 'uneven.id')})
  ORDER BY account_id, seq LIMIT ${NAMED}`;

interface Uneven {
  readonly accountId: string;
  readonly rid: string;
  /** The number of the record's entry; null without an entry, and then `calls` and `charged` are null, too. */
  readonly seq: number | null;
  /** How many usage records the entry must have. */
  readonly calls: number | null;
  readonly keyId: string | null;
  readonly records: number;
  readonly charged: string | null;
  readonly cost: string | null;
  /** Whether the report of an allowance (money held in advance) charged for the reservation although the reservation has an entry of its own. */
  readonly isReported: boolean;
}

/**
 * Compares entries with their usage records over the last days, in both directions. The reservation of a call has one record, and the
 * report of an allowance has one for each of its calls. An entry's records together cost the entry's amount. The comparison begins a day
 * after the oldest rows of both tables, because an entry may be a day later than its record.
 */
export async function compareRecords(
  database: Knex,
  accountIds: readonly string[],
  days: number,
  now = Date.now(),
): Promise<readonly Violation[]> {
  const found: Violation[] = [];
  const ids = JSON.stringify(accountIds);
  const dropped = await droppedBefore(database);
  const earliest = dropped === undefined ? 0 : dropped.getTime() + DAY_MS;
  for (let day = days; day > 0; day -= 1) {
    // The newest compared day ends in the future, because the clocks of other nodes may be ahead.
    const end = now - (day === 1 ? -1 : day - 1) * DAY_MS;
    if (end <= earliest) continue;
    const from = new Date(Math.max(earliest, now - day * DAY_MS)).toISOString();
    const to = new Date(end).toISOString();
    const { rows } = await database.raw<{ rows: Uneven[] }>(UNEVEN, { accountIds: ids, from, to });
    found.push(...rows.map(describe));
  }
  return found;
}

function describe({ calls, records, charged, cost, isReported, ...at }: Uneven): Violation {
  if (calls === null) return violation('record_without_entry', at, 'an entry', 'none');
  if (isReported) return violation('closed_twice', at, 'only the report of its record', 'an entry of its own too');
  if (records < calls) return violation('record_missing', at, calls, records);
  if (records > calls) return violation('record_twice', at, calls, records);
  return violation('record_differs', at, charged, cost);
}

/** Returns violations for credits older than PATIENCE_MS that have no entry, or an entry with another amount. */
export async function compareCredits(database: Knex, accountIds: readonly string[]): Promise<readonly Violation[]> {
  const { rows } = await database.raw<{
    rows: { accountId: string; rid: string; seq: number | null; amount: string; booked: string | null }[];
  }>(
    `SELECT credit.account_id::text AS "accountId", credit.id::text AS rid, entry.seq::float8 AS seq,
            credit.amount_e8::text AS amount, entry.amount_e8::text AS booked
     FROM credits AS credit LEFT JOIN ledger_entries AS entry
       ON entry.account_id = credit.account_id AND entry.rid = credit.id AND entry.kind = 'credit'
     WHERE credit.account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb))
       AND credit.created_at < now() - interval '${PATIENCE_MS} milliseconds'
       AND credit.dropped_posted_e8 IS NULL AND entry.amount_e8 IS DISTINCT FROM credit.amount_e8
     ORDER BY credit.id LIMIT ${NAMED}`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return rows.map(({ amount, booked, ...at }) => violation('credit_missing', at, amount, booked ?? 'no entry'));
}
