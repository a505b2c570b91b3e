import type { Knex } from 'knex';
import { timeOfId } from '../ids';
import type { OutboxEntry } from './ledger';

/** A usage record with what only the ledger knows of it. */
export interface UsageRow {
  /** JSON of a UsageRecord, as it is: nothing here has to read it. */
  readonly record: string;
  /** null for a call that was refused before it had a reservation. */
  readonly rid: string | null;
  readonly costE8: bigint;
  /** In place of the record's own. */
  readonly billing?: 'expired';
}

/*
 * Rows travel as one JSON parameter: one statement text for any number of rows, the same for Postgres and PGlite, and far
 * from the limit of 65,535 parameters. Amounts are strings in it, which Postgres reads exactly.
 */

const INSERT_ENTRIES = `
  INSERT INTO ledger_entries
    (account_id, seq, rid, kind, key_id, amount_e8, posted_e8, shortfall_e8, of_call, created_at)
  SELECT "accountId", seq, rid, kind, "keyId", "amountE8", "postedE8", "shortfallE8", "ofCall", "createdAt"
  FROM jsonb_to_recordset(:rows::jsonb) AS entry (
    "accountId" uuid, seq bigint, rid uuid, kind text, "keyId" uuid,
    "amountE8" bigint, "postedE8" bigint, "shortfallE8" bigint, "ofCall" boolean, "createdAt" timestamptz)
  ON CONFLICT DO NOTHING`;

const INSERT_USAGE = `
  INSERT INTO usage_records
    (request_id, created_at, rid, account_id, key_id, protocol, path, strategy, model_requested, model, upstream,
     attempts, fallback, stream, status, source, error_code, input_tokens, output_tokens, total_tokens,
     cache_creation_tokens, cache_read_tokens, cost_e8, billing, response_time_ms, first_token_ms, config_revision)
  SELECT "requestId", "createdAt", rid, "accountId", "keyId", protocol, path, strategy, "modelRequested", model, upstream,
     attempts, fallback, stream, status, source, "errorCode", "inputTokens", "outputTokens", "totalTokens",
     "cacheCreationTokens", "cacheReadTokens", "costE8", billing, "responseTimeMs", "firstTokenMs", "configRevision"
  FROM jsonb_to_recordset(:rows::jsonb) AS record (
    "requestId" text, "createdAt" timestamptz, rid uuid, "accountId" uuid, "keyId" uuid,
    protocol text, path text, strategy text, "modelRequested" text, model text, upstream text,
    attempts int, fallback boolean, stream boolean, status int, source text, "errorCode" text,
    "inputTokens" bigint, "outputTokens" bigint, "totalTokens" bigint, "cacheCreationTokens" bigint,
    "cacheReadTokens" bigint, "costE8" bigint, billing text, "responseTimeMs" int, "firstTokenMs" int,
    "configRevision" text)
  ON CONFLICT DO NOTHING`;

/** Rows that are there already are left as they are: entries are written at least once and count once. */
export async function insertEntries(database: Knex, entries: readonly OutboxEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await database.raw(INSERT_ENTRIES, { rows: JSON.stringify(entries.map(entryRow)) });
}

export async function insertUsage(database: Knex, rows: readonly UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await database.raw(INSERT_USAGE, { rows: `[${rows.map(usageJson).join(',')}]` });
}

/** What comes last counts, where a member is repeated. */
function usageJson({ record, rid, costE8, billing }: UsageRow): string {
  const more = JSON.stringify({ rid, costE8: costE8.toString(), billing });
  return `${record.slice(0, record.lastIndexOf('}'))},${more.slice(1)}`;
}

function entryRow(entry: OutboxEntry): object {
  return {
    accountId: entry.accountId,
    seq: entry.seq,
    rid: entry.rid,
    kind: entry.kind,
    keyId: entry.keyId ?? null,
    amountE8: entry.amountE8.toString(),
    postedE8: entry.postedE8.toString(),
    shortfallE8: entry.shortfallE8.toString(),
    ofCall: entry.record !== undefined,
    createdAt: new Date(timeOfId(entry.rid)).toISOString(),
  };
}

/** The usage record an entry closes; undefined where it has none. */
export function usageRowOf({ record, rid, amountE8, kind }: OutboxEntry): UsageRow | undefined {
  if (record === undefined) return undefined;
  return { record, rid, costE8: -amountE8, ...(kind === 'expire' ? { billing: 'expired' } : {}) };
}
