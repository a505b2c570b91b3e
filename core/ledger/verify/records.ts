import type { Knex } from 'knex';
import { droppedBefore } from '../outbox/partitions';
import { PATIENCE_MS, type Violation, violation } from './invariants';

/** Usage records are compared a day at a time, so that no statement takes long. */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Places that are named of one account page and day; where there are more, these say enough. */
const NAMED = 100;

/**
 * The reservation's time is in its id and on its entry; the record's is when its call came, at most an hour before: a body
 * takes two minutes at most. A full join, because Postgres answers it by hashing or sorting, however little it knows of the tables.
 * It would visit all records for each entry where it last looked when each account had one.
 */
const UNEVEN = `
  WITH wanted AS (SELECT value::uuid AS account_id FROM jsonb_array_elements_text(:accountIds::jsonb)),
  entry AS (
    SELECT account_id, rid, seq, key_id, amount_e8, created_at FROM ledger_entries
    WHERE account_id IN (SELECT account_id FROM wanted) AND of_call
      AND created_at >= :from::timestamptz - interval '1 hour' AND created_at < :to::timestamptz + interval '1 hour'
  ), record AS (
    SELECT account_id, rid, min(key_id::text) AS key_id, count(*)::int AS records, min(cost_e8) AS cost_e8,
           min(created_at) AS created_at
    FROM usage_records
    WHERE account_id IN (SELECT account_id FROM wanted) AND rid IS NOT NULL
      AND created_at >= :from::timestamptz - interval '1 hour' AND created_at < :to::timestamptz + interval '1 hour'
    GROUP BY account_id, rid
  )
  SELECT account_id::text AS "accountId", rid::text, entry.seq::float8 AS seq,
         coalesce(entry.key_id::text, record.key_id) AS "keyId", coalesce(record.records, 0) AS records,
         (-entry.amount_e8)::text AS charged, record.cost_e8::text AS cost
  FROM entry FULL JOIN record USING (account_id, rid)
  WHERE coalesce(entry.created_at, record.created_at) >= :from::timestamptz
    AND coalesce(entry.created_at, record.created_at) < :to::timestamptz
    AND (entry.seq IS NULL OR record.records IS DISTINCT FROM 1 OR record.cost_e8 <> -entry.amount_e8)
  ORDER BY account_id, entry.seq LIMIT ${NAMED}`;

interface Uneven {
  readonly accountId: string;
  readonly rid: string;
  /** Null when the record has no entry. */
  readonly seq: number | null;
  readonly keyId: string | null;
  readonly records: number;
  readonly charged: string | null;
  readonly cost: string | null;
}

/**
 * One usage record per closed reservation of a call, with the same amount, and the reverse, over the last days: as far back as
 * there are both, and that one hour more by which an entry may be later than its record.
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
  const earliest = dropped === undefined ? 0 : dropped.getTime() + HOUR_MS;
  for (let day = days; day > 0; day -= 1) {
    // The newest day ends in the future: clocks of nodes differ.
    const end = now - (day === 1 ? -1 : day - 1) * DAY_MS;
    if (end <= earliest) continue;
    const from = new Date(Math.max(earliest, now - day * DAY_MS)).toISOString();
    const to = new Date(end).toISOString();
    const { rows } = await database.raw<{ rows: Uneven[] }>(UNEVEN, { accountIds: ids, from, to });
    found.push(...rows.map(describe));
  }
  return found;
}

function describe({ records, charged, cost, ...at }: Uneven): Violation {
  if (charged === null) return violation('record_without_entry', at, 'an entry', 'none');
  if (records === 0) return violation('record_missing', at, 1, 0);
  if (records > 1) return violation('record_twice', at, 1, records);
  return violation('record_differs', at, charged, cost);
}

/** Credits that were written a while ago and are not, or not with their amount, among the entries. */
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
