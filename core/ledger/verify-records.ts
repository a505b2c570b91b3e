import type { Knex } from 'knex';
import { PATIENCE_MS, type Violation, violation } from './invariants';
import { droppedBefore } from './partitions';

/** Usage records are compared a day at a time, so that no statement takes long. */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Places that are named of one account page and day; where there are more, these say enough. */
const NAMED = 100;

/**
 * The reservation's time is in its id and on its entry; the record's is when its call came, at most an hour before: a body
 * takes two minutes at most.
 */
const UNEVEN = `
  SELECT entry.account_id::text AS "accountId", entry.rid::text, entry.seq::float8 AS seq, entry.key_id::text AS "keyId",
         count(record.request_id)::int AS records, (-entry.amount_e8)::text AS charged,
         min(record.cost_e8)::text AS cost
  FROM ledger_entries AS entry LEFT JOIN usage_records AS record
    ON record.account_id = entry.account_id AND record.rid = entry.rid
   AND record.created_at >= :from::timestamptz - interval '1 hour'
   AND record.created_at < :to::timestamptz + interval '1 hour'
   AND record.account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb))
  WHERE entry.account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb))
    AND entry.of_call AND entry.created_at >= :from::timestamptz AND entry.created_at < :to::timestamptz
  GROUP BY entry.account_id, entry.rid, entry.seq, entry.key_id, entry.amount_e8
  HAVING count(record.request_id) <> 1 OR min(record.cost_e8) <> -entry.amount_e8
  ORDER BY entry.account_id, entry.seq LIMIT ${NAMED}`;

const ALONE = `
  SELECT record.account_id::text AS "accountId", record.rid::text, record.key_id::text AS "keyId"
  FROM usage_records AS record
  WHERE record.account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb))
    AND record.created_at >= :from::timestamptz AND record.created_at < :to::timestamptz AND record.rid IS NOT NULL
    AND NOT EXISTS (
      SELECT 1 FROM ledger_entries AS entry
      WHERE entry.account_id = record.account_id AND entry.rid = record.rid AND entry.of_call)
  LIMIT ${NAMED}`;

interface Uneven {
  readonly accountId: string;
  readonly rid: string;
  readonly seq: number;
  readonly keyId: string | null;
  readonly records: number;
  readonly charged: string;
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
    const { rows: uneven } = await database.raw<{ rows: Uneven[] }>(UNEVEN, { accountIds: ids, from, to });
    found.push(...uneven.map(describe));
    const { rows: alone } = await database.raw<{ rows: Pick<Uneven, 'accountId' | 'rid' | 'keyId'>[] }>(ALONE, {
      ...{ accountIds: ids, from, to },
    });
    found.push(...alone.map((at) => violation('record_without_entry', at, 'an entry', 'none')));
  }
  return found;
}

function describe({ records, charged, cost, ...at }: Uneven): Violation {
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
