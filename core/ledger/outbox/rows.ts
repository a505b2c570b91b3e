import type { Knex } from 'knex';
import { timeOfId } from '../../base/ids';
import { MAX_AMOUNT_E8 } from '../../base/money';
import { ATTEMPT_SQL, type RecordedAttempt } from '../../catalog/attempt-fields';
import { USAGE_SQL } from '../../catalog/usage-fields';
import type { OutboxEntry } from '../ledger';
import { dayStartMs } from '../scopes';

/** A usage record with the values that only the ledger knows, such as the charge. */
export interface UsageRow {
  /** JSON of a UsageRecord, as the call wrote it. */
  readonly record: string;
  /** null for a call that was refused before it had a reservation. */
  readonly rid: string | null;
  /** The report of an allowance (money that a node holds in advance) whose ledger entry charges the call; undefined for a call with its own entry. */
  readonly reportId?: string;
  readonly costE8: bigint;
}

/*
 * Rows are sent as one JSON parameter. The statement then has one text for any number of rows, for Postgres and for PGlite. It
 * also stays far from the limit of 65,535 parameters. Amounts are strings in the JSON, because Postgres reads them exactly.
 */

/**
 * Returns an SQL expression for the names of an entry's scopes (see `chainOf`), from the account to the API key. `entry` is the name of a
 * row with the columns account_id, scopes and key_id.
 */
export function chainSql(entry: string): string {
  return `string_to_array(concat_ws(' ', 'a:' || ${entry}.account_id, ${entry}.scopes, 'k:' || ${entry}.key_id), ' ')`;
}

/**
 * Writes new entries, advances the end of each account's chain, and adds up what each scope has spent on each day. Returns how many
 * entries are new. It also returns the accounts whose chain was already past a new entry, because the ledger was restored to an older state. All
 * parts of the statement see the tables as they were before it.
 *
 * The statement filters charges while it sums them, not before the join. With an earlier filter, Postgres expects one charge and compares
 * every entry with every other one. For 1,500 entries, that costs 253 µs of Postgres' CPU per entry instead of 20; for 150 entries, 67
 * instead of 40. It sums per chain of scopes before it splits the chains, because many charges have the same chain.
 */
const INSERT_ENTRIES = `
  WITH entry AS (
    SELECT * FROM jsonb_to_recordset(:rows::jsonb) AS entry (
      "accountId" uuid, seq bigint, rid uuid, kind text, "keyId" uuid, "amountE8" bigint, "postedE8" bigint,
      "shortfallE8" bigint, "ofCall" boolean, calls int, "createdAt" timestamptz, scopes text, day date)),
  written AS (
    INSERT INTO ledger_entries
      (account_id, seq, rid, kind, key_id, amount_e8, posted_e8, shortfall_e8, of_call, calls, created_at, scopes)
    SELECT "accountId", seq, rid, kind, "keyId", "amountE8", "postedE8", "shortfallE8", "ofCall", calls, "createdAt", scopes
    FROM entry
    ON CONFLICT DO NOTHING
    RETURNING account_id, seq, rid, kind, key_id, amount_e8, posted_e8, scopes),
  chained AS (
    INSERT INTO ledger_accounts (account_id, seq, posted_e8)
    SELECT DISTINCT ON (account_id) account_id, seq, posted_e8 FROM written ORDER BY account_id, seq DESC
    ON CONFLICT (account_id) DO UPDATE SET seq = excluded.seq, posted_e8 = excluded.posted_e8),
  spent AS (
    INSERT INTO scope_spending (scope, day, spent_e8)
    SELECT scope, day, sum(charged) FROM (
      SELECT unnest(${chainSql('charges')}) AS scope, day, charged FROM (
        SELECT written.account_id, written.scopes, written.key_id, entry.day,
          -sum(written.amount_e8) FILTER (WHERE kind = 'charge') AS charged
        FROM written JOIN entry USING (rid, kind) GROUP BY 1, 2, 3, 4) AS charges
      WHERE charged > 0) AS of_scopes
    GROUP BY 1, 2
    ON CONFLICT (scope, day) DO UPDATE SET spent_e8 = scope_spending.spent_e8 + excluded.spent_e8)
  SELECT (SELECT count(*)::int FROM written) AS "newRows", to_json(ARRAY(
    SELECT DISTINCT written.account_id FROM written JOIN ledger_accounts AS chain USING (account_id)
    WHERE written.seq <= chain.seq)) AS "steppedBack"`;

/**
 * The end of an SQL statement. The statement must define `caused (account_id, key_id, e8)`: costs above holds. This part adds each amount
 * to the excess of its API key and its account.
 */
export const ADD_CAUSED_EXCESS = `
  , of_keys AS (
    UPDATE api_keys SET excess_e8 = least(excess_e8 + caused.e8, ${MAX_AMOUNT_E8})
    FROM (SELECT key_id, sum(e8) AS e8 FROM caused GROUP BY 1) AS caused WHERE api_keys.id = caused.key_id)
  UPDATE accounts SET excess_e8 = least(excess_e8 + caused.e8, ${MAX_AMOUNT_E8})
  FROM (SELECT account_id, sum(e8) AS e8 FROM caused GROUP BY 1) AS caused WHERE accounts.id = caused.account_id`;

/**
 * Writes usage records.
 *
 * If a call's reserve got no answer, the call is refused, and its record names no reservation. The ledger may have applied the reserve
 * anyway. The entry that returns this hold then contains the call's record again, now with the reservation.
 *
 * A request may have caused a cost above its hold (an excess). For a new record, the statement adds this excess to the record's key and
 * account.
 */
const INSERT_USAGE = `
  WITH record AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(:rows::jsonb) AS record (rid uuid, "reportId" uuid, made jsonb, ${USAGE_SQL.types})),
  attempts AS (${insertAttemptsOf('record')}),
  written AS (
    INSERT INTO usage_records (rid, report_id, ${USAGE_SQL.columns})
    SELECT DISTINCT ON ("requestId", "createdAt") rid, "reportId", ${USAGE_SQL.values}
    FROM record
    ORDER BY "requestId", "createdAt", rid NULLS LAST
    ON CONFLICT (request_id, created_at) DO UPDATE
      SET rid = excluded.rid, report_id = excluded.report_id, cost_e8 = excluded.cost_e8, billing = excluded.billing
      WHERE usage_records.rid IS NULL AND excluded.rid IS NOT NULL
    RETURNING account_id, key_id, excess_e8, flags),
  caused AS (
    SELECT account_id, key_id, excess_e8 AS e8 FROM written
    WHERE excess_e8 > 0 AND (flags @> '["suspect"]') IS NOT TRUE)
  ${ADD_CAUSED_EXCESS}`;

/** Returns a statement that inserts the upstream attempts of `records`. It does not change existing attempts. */
function insertAttemptsOf(records: string): string {
  return `
  INSERT INTO upstream_attempts (request_id, account_id, ${ATTEMPT_SQL.columns})
  SELECT "requestId", "accountId", ${ATTEMPT_SQL.values}
  FROM (SELECT "requestId", "accountId", made FROM ${records}) AS record
  CROSS JOIN LATERAL ROWS FROM (jsonb_to_recordset(made) AS (${ATTEMPT_SQL.types}))
    WITH ORDINALITY AS attempt (${ATTEMPT_SQL.names}, place)
  ON CONFLICT DO NOTHING`;
}

interface InsertedEntries {
  readonly newRows: number;
  /** Accounts of which Postgres already had entries up to or beyond the sequence number of a new entry. */
  readonly steppedBack: readonly string[];
}

/** Writes entries. It does not change existing rows, so an entry that is written twice counts once. */
export async function insertEntries(database: Knex, entries: readonly OutboxEntry[]): Promise<InsertedEntries> {
  const rows = JSON.stringify(entries.map(entryRow));
  const answer = await database.raw<{ rows: [InsertedEntries] }>(INSERT_ENTRIES, { rows });
  return answer.rows[0];
}

export async function insertUsage(database: Knex, rows: readonly UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await database.raw(INSERT_USAGE, { rows: `[${rows.map(usageJson).join(',')}]` });
}

/** Upstream attempts that are written without a usage record, or after their usage record. */
interface AttemptsRow {
  readonly requestId: string;
  /** The account of the attempts; null for an operator's test of an upstream. */
  readonly accountId: string | null;
  readonly made: readonly RecordedAttempt[];
}

const INSERT_ATTEMPTS = insertAttemptsOf(
  'jsonb_to_recordset(:rows::jsonb) AS given ("requestId" text, "accountId" uuid, made jsonb)',
);

/** Writes upstream attempts that have no usage record with them: those of mirrored calls and of operators' tests. It does not change existing attempts. */
export async function insertAttempts(database: Knex, rows: readonly AttemptsRow[]): Promise<void> {
  if (rows.length > 0) await database.raw(INSERT_ATTEMPTS, { rows: JSON.stringify(rows) });
}

/** Returns a usage record as JSON with the ledger's values at its end. They replace the record's own values, because the last of repeated members counts. */
function usageJson({ record, rid, reportId, costE8 }: UsageRow): string {
  const more = JSON.stringify({ rid, reportId, costE8: costE8.toString() });
  return `${record.slice(0, record.lastIndexOf('}'))},${more.slice(1)}`;
}

function entryRow(entry: OutboxEntry): object {
  const records = usageRowsOf(entry).length;
  return {
    accountId: entry.accountId,
    seq: entry.seq,
    rid: entry.rid,
    kind: entry.kind,
    keyId: entry.keyId ?? null,
    amountE8: entry.amountE8.toString(),
    postedE8: entry.postedE8.toString(),
    shortfallE8: entry.shortfallE8.toString(),
    ofCall: records > 0,
    calls: entry.calls && records,
    createdAt: new Date(timeOfId(entry.rid)).toISOString(),
    scopes: entry.scopes || null,
    day: dayOf(entry),
  };
}

/** Returns the day of UTC in which an entry counts, such as `2026-11-20`. */
export function dayOf({ id, day }: Pick<OutboxEntry, 'id' | 'day'>): string {
  // An entry's id in the outbox begins with the time in ms of the ledger's clock.
  return new Date(day === undefined ? Number.parseInt(id, 10) : dayStartMs(day)).toISOString().slice(0, 10);
}

/** A usage record that belongs to a ledger entry. */
export interface EntryUsage extends UsageRow {
  readonly rid: string;
  readonly accountId: string;
}

/** Returns the usage records of an entry: one for a call, one for each call of a report, or none. */
export function usageRowsOf({ record, calls, rid, accountId, amountE8, kind }: OutboxEntry): readonly EntryUsage[] {
  if (calls !== undefined)
    return calls
      .filter((call) => call.record !== '')
      .map((call) => ({
        record: call.ending === 'expired' ? expiredRecord(call.record) : call.record,
        rid: call.rid,
        reportId: rid,
        accountId,
        costE8: call.costE8,
      }));
  if (record === undefined) return [];
  return [{ record: kind === 'expire' ? expiredRecord(record) : record, rid, accountId, costE8: -amountE8 }];
}

const EXPIRED = JSON.stringify({
  attempts: 0,
  fallback: false,
  status: 0,
  source: 'platform',
  responseTimeMs: 0,
  billing: 'expired',
});

/** Returns the usage record of a call whose hold expired, made from the facts stored with the hold. */
export function expiredRecord(facts: string): string {
  return `${EXPIRED.slice(0, -1)},${facts.slice(1)}`;
}

interface ReservationRow {
  readonly rid: string;
  readonly accountId: string;
}

/**
 * Finds the closing entry of a reservation, or the usage record of a call that the report of an allowance charged. (An allowance is money
 * that a node holds in advance.) Records are indexed by reservation and time. The search covers an hour around the time in the
 * reservation's UUIDv7, because clocks may differ.
 */
const WRITTEN = `
  SELECT wanted.rid::text AS rid
  FROM jsonb_to_recordset(:reservations::jsonb) AS wanted (rid uuid, "accountId" uuid, at timestamptz)
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM ledger_entries AS entry
    WHERE entry.account_id = wanted."accountId" AND entry.rid = wanted.rid AND entry.created_at = wanted.at LIMIT 1) AS closing ON true
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM usage_records AS record
    WHERE closing.found IS NULL AND record.rid = wanted.rid AND record.account_id = wanted."accountId"
      AND record.created_at BETWEEN wanted.at - interval '1 hour' AND wanted.at + interval '1 hour' LIMIT 1) AS reported ON true
  WHERE coalesce(closing.found, reported.found) IS NOT NULL`;

/** Returns the ids of the reservations that are closed in Postgres: by an entry, or by the record of a reported call. */
export async function writtenCalls(
  database: Knex,
  reservations: readonly ReservationRow[],
): Promise<ReadonlySet<string>> {
  const wanted = reservations.map(({ rid, accountId }) => ({ rid, accountId, at: new Date(timeOfId(rid)) }));
  const { rows } = await database.raw<{ rows: { rid: string }[] }>(WRITTEN, { reservations: JSON.stringify(wanted) });
  return new Set(rows.map(({ rid }) => rid));
}
