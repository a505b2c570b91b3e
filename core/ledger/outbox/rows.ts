import type { Knex } from 'knex';
import { ATTEMPT_SQL, type RecordedAttempt } from '../../catalog/attempt-fields';
import { USAGE_SQL } from '../../catalog/usage-fields';
import { timeOfId } from '../../ids';
import { MAX_AMOUNT_E8 } from '../../money';
import type { OutboxEntry } from '../ledger';

/** A usage record with what only the ledger knows of it. */
export interface UsageRow {
  /** JSON of a UsageRecord, as it is: nothing here has to read it. */
  readonly record: string;
  /** null for a call that was refused before it had a reservation. */
  readonly rid: string | null;
  /** The report whose entry charges for the call; undefined for a call that has an entry of its own. */
  readonly reportId?: string;
  readonly costE8: bigint;
  /** In place of the record's own. */
  readonly billing?: 'expired';
}

/*
 * Rows travel as one JSON parameter: one statement text for any number of rows, the same for Postgres and PGlite, and far
 * from the limit of 65,535 parameters. Amounts are strings in it, which Postgres reads exactly.
 */

/**
 * Writes entries that are not there yet, moves on the end of each account's chain and adds up what each key has spent on
 * each day. Answers how many are new, and the accounts whose chain was already further than one of those: the ledger has gone back
 * in time. All parts of the statement see the tables as they were before it.
 *
 * Charges are picked out while they are added up: asked for before the join, Postgres expects one of them and compares every
 * entry with every other: 253 µs of its CPU an entry in the place of 20 when 1,500 come together, 67 in the place of 40 for 150.
 */
const INSERT_ENTRIES = `
  WITH entry AS (
    SELECT * FROM jsonb_to_recordset(:rows::jsonb) AS entry (
      "accountId" uuid, seq bigint, rid uuid, kind text, "keyId" uuid, "amountE8" bigint, "postedE8" bigint,
      "shortfallE8" bigint, "ofCall" boolean, calls int, "createdAt" timestamptz, day date)),
  written AS (
    INSERT INTO ledger_entries
      (account_id, seq, rid, kind, key_id, amount_e8, posted_e8, shortfall_e8, of_call, calls, created_at)
    SELECT "accountId", seq, rid, kind, "keyId", "amountE8", "postedE8", "shortfallE8", "ofCall", calls, "createdAt"
    FROM entry
    ON CONFLICT DO NOTHING
    RETURNING account_id, seq, rid, kind, key_id, amount_e8, posted_e8),
  chained AS (
    INSERT INTO ledger_accounts (account_id, seq, posted_e8)
    SELECT DISTINCT ON (account_id) account_id, seq, posted_e8 FROM written ORDER BY account_id, seq DESC
    ON CONFLICT (account_id) DO UPDATE SET seq = excluded.seq, posted_e8 = excluded.posted_e8),
  spent AS (
    INSERT INTO key_spending (key_id, day, spent_e8)
    SELECT key_id, day, charged FROM (
      SELECT written.key_id, entry.day, -sum(written.amount_e8) FILTER (WHERE kind = 'charge') AS charged
      FROM written JOIN entry USING (rid, kind) GROUP BY 1, 2) AS charges
    WHERE charged > 0
    ON CONFLICT (key_id, day) DO UPDATE SET spent_e8 = key_spending.spent_e8 + excluded.spent_e8)
  SELECT (SELECT count(*)::int FROM written) AS "newRows", to_json(ARRAY(
    SELECT DISTINCT written.account_id FROM written JOIN ledger_accounts AS chain USING (account_id)
    WHERE written.seq <= chain.seq)) AS "steppedBack"`;

/**
 * A call whose reserve was not answered is refused, and has a record as such; when the reserve was taken after all, the entry
 * that gives its hold back comes with the record of the same call, which then knows its reservation. What a new record says of an
 * excess that its request caused is added to its account.
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
    RETURNING account_id, excess_e8, flags),
  caused AS (
    SELECT account_id, least(sum(excess_e8), ${MAX_AMOUNT_E8})::bigint AS e8 FROM written
    WHERE excess_e8 > 0 AND flags @> '["suspect"]' IS NOT TRUE GROUP BY account_id)
  UPDATE accounts SET excess_e8 = least(excess_e8 + caused.e8, ${MAX_AMOUNT_E8})
  FROM caused WHERE accounts.id = caused.account_id`;

/** Inserts the attempts of records; attempts that are there already are left as they are. */
function insertAttemptsOf(records: string): string {
  return `
  INSERT INTO upstream_attempts (request_id, account_id, ${ATTEMPT_SQL.columns})
  SELECT "requestId", "accountId", ${ATTEMPT_SQL.values}
  FROM (SELECT "requestId", "accountId", made FROM ${records}) AS record
  CROSS JOIN LATERAL ROWS FROM (jsonb_to_recordset(made) AS (${ATTEMPT_SQL.types}))
    WITH ORDINALITY AS attempt (${ATTEMPT_SQL.names}, place)
  ON CONFLICT DO NOTHING`;
}

export interface InsertedEntries {
  readonly newRows: number;
  /** Accounts of which an entry that is new has a number the chain in the database is past. */
  readonly steppedBack: readonly string[];
}

/** Rows that are there already are left as they are: entries are written at least once and count once. */
export async function insertEntries(database: Knex, entries: readonly OutboxEntry[]): Promise<InsertedEntries> {
  const rows = JSON.stringify(entries.map(entryRow));
  const answer = await database.raw<{ rows: [InsertedEntries] }>(INSERT_ENTRIES, { rows });
  return answer.rows[0];
}

export async function insertUsage(database: Knex, rows: readonly UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await database.raw(INSERT_USAGE, { rows: `[${rows.map(usageJson).join(',')}]` });
}

/** Attempts that belong to no usage record, or to one that was written before. */
export interface AttemptsRow {
  readonly requestId: string;
  /** null for an operator's test. */
  readonly accountId: string | null;
  readonly made: readonly RecordedAttempt[];
}

const INSERT_ATTEMPTS = insertAttemptsOf(
  'jsonb_to_recordset(:rows::jsonb) AS given ("requestId" text, "accountId" uuid, made jsonb)',
);

/** Writes attempts beside usage records: mirrors and operators' tests. Attempts that are there already are left as they are. */
export async function insertAttempts(database: Knex, rows: readonly AttemptsRow[]): Promise<void> {
  if (rows.length > 0) await database.raw(INSERT_ATTEMPTS, { rows: JSON.stringify(rows) });
}

/** What comes last counts, where a member is repeated. */
function usageJson({ record, rid, reportId, costE8, billing }: UsageRow): string {
  const more = JSON.stringify({ rid, reportId, costE8: costE8.toString(), billing });
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
    // The outbox numbers its entries by the ledger's clock.
    day: new Date(Number.parseInt(entry.id, 10)).toISOString().slice(0, 10),
  };
}

/** A usage record of an entry. */
export interface EntryUsage extends UsageRow {
  readonly rid: string;
  readonly accountId: string;
}

/** Returns the usage records of an entry: that of its call, those of its report's calls, or none. */
export function usageRowsOf({ record, calls, rid, accountId, amountE8, kind }: OutboxEntry): readonly EntryUsage[] {
  if (calls !== undefined)
    return calls
      .filter((call) => call.record !== '')
      .map((call) => ({
        ...{ record: call.record, rid: call.rid, reportId: rid, accountId, costE8: call.costE8 },
        ...(call.ending === 'expired' && EXPIRED),
      }));
  if (record === undefined) return [];
  return [{ record, rid, accountId, costE8: -amountE8, ...(kind === 'expire' && EXPIRED) }];
}

const EXPIRED = { billing: 'expired' } as const;
