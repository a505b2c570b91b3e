import type { Knex } from 'knex';
import { clampToCountable } from '../../base/money';
import { ATTEMPT_COPY, type RecordedAttempt } from '../../catalog/attempt-fields';
import { USAGE_COPY } from '../../catalog/usage-fields';
import { CopyRows, copyInto, NotCopyable } from '../../storage/copy-rows';
import { ADD_CAUSED_EXCESS, type UsageRow } from './rows';

/** A UsageRecord, parsed from JSON. */
type Parsed = Readonly<Record<string, unknown>>;

const RECORDS = `usage_records (rid, report_id, ${USAGE_COPY.map(({ column }) => column).join()})`;
const VALUES_OF_RECORD = USAGE_COPY.length + 2;

const ATTEMPTS = `upstream_attempts (request_id, account_id, ${ATTEMPT_COPY.map(({ column }) => column).join()})`;
const VALUES_OF_ATTEMPT = ATTEMPT_COPY.length + 2;

const ADD_EXCESS = `
  WITH caused AS (
    SELECT * FROM jsonb_to_recordset(:caused::jsonb) AS caused (account_id uuid, key_id uuid, e8 bigint))
  ${ADD_CAUSED_EXCESS}`;

/**
 * Writes new usage records like `insertUsage`, at less than half of the cost for Postgres. It writes all records or none. If a record
 * exists or cannot be copied, it rejects with an error of Postgres or with NotCopyable.
 */
export async function copyUsage(trx: Knex.Transaction, rows: readonly UsageRow[]): Promise<void> {
  const records = new CopyRows();
  const attempts = new CopyRows();
  const caused: object[] = [];
  for (const row of rows) {
    const parsed = parse(row.record);
    addRecord(records, row, parsed);
    if (parsed['made'] !== undefined) addAttempts(attempts, parsed);
    const excessE8 = excessOf(parsed);
    if (excessE8 > 0n)
      caused.push({ account_id: parsed['accountId'], key_id: parsed['keyId'], e8: String(clampToCountable(excessE8)) });
  }
  await copyInto(trx, RECORDS, records);
  await copyInto(trx, ATTEMPTS, attempts);
  if (caused.length > 0) await trx.raw(ADD_EXCESS, { caused: JSON.stringify(caused) });
}

function parse(record: string): Parsed {
  try {
    return JSON.parse(record);
  } catch (cause) {
    throw new NotCopyable('a record is not JSON', { cause });
  }
}

function addRecord(rows: CopyRows, { rid, reportId, costE8 }: UsageRow, record: Parsed): void {
  rows.begin(VALUES_OF_RECORD);
  rows.add('uuid', rid);
  rows.add('uuid', reportId);
  for (const { name, sql, fallback } of USAGE_COPY) {
    if (name === 'costE8') rows.add(sql, costE8.toString());
    else rows.add(sql, record[name] ?? fallback);
  }
}

function addAttempts(rows: CopyRows, { requestId, accountId, made }: Parsed): void {
  if (!Array.isArray(made)) throw new NotCopyable('the attempts of a record are no list');
  for (const [index, each] of (made as readonly RecordedAttempt[]).entries()) {
    rows.begin(VALUES_OF_ATTEMPT);
    rows.add('text', requestId);
    rows.add('uuid', accountId);
    for (const { recorded, sql, fallback } of ATTEMPT_COPY) {
      const usual = fallback === 'place' ? index + 1 : fallback === 'upstream' ? each.upstream : fallback;
      rows.add(sql, each[recorded] ?? usual);
    }
  }
}

/** Returns the upstream's cost above the hold if the client's request caused that cost. Returns 0 for a usage record flagged `suspect`. */
function excessOf({ excessE8, flags }: Parsed): bigint {
  return Array.isArray(flags) && flags.includes('suspect') ? 0n : BigInt(String(excessE8 ?? 0));
}
