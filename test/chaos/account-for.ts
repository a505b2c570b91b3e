import type { Knex } from 'knex';
import type { Acknowledged } from './load';

/** The result of comparing what customers were told with the database. */
export interface Accounts {
  readonly entries: number;
  readonly records: number;
  /** The number of reports among the entries, and the number of calls in them. */
  readonly reports: number;
  readonly reportedCalls: number;
  readonly charges: number;
  /** Acknowledged calls without a record or with another cost, although their lease had not ended. */
  readonly lost: readonly string[];
  /** Acknowledged calls whose hold was returned because the lease ended before the settlement: the platform's loss. */
  readonly afterLease: number;
  /**
   * Acknowledged calls that were charged in part, because the balance was used up when the settle was repeated. The rest is recorded as shortfall.
   */
  readonly inPart: number;
  readonly twice: number;
  readonly gaps: number;
  /** Entries with a balance below zero, and scopes that have spent more than their limit in all. */
  readonly exceeded: number;
  /** Descriptions of sums that differ. */
  readonly differences: readonly string[];
}

/** Compares the answers that customers got with the rows of the database. Amounts must be exactly equal. */
export async function accountFor(database: Knex, { calls, credits }: Acknowledged): Promise<Accounts> {
  const lost: string[] = [];
  let [afterLease, inPart] = [0, 0];
  const records = await rowsOf<{ requestId: string; entry: string; cost: string; billing: string }>(database, RECORDS);
  /** What each entry could not charge; for a report, the sum over its calls. */
  const shortfalls = new Map(
    (await rowsOf<{ rid: string; shortfall: string }>(database, SHORTFALLS)).map(({ rid, shortfall }) => [
      rid,
      BigInt(shortfall),
    ]),
  );
  const byId = new Map(records.map((record) => [record.requestId, record]));
  for (const [requestId, costE8] of calls) {
    const record = byId.get(requestId);
    if (record !== undefined && BigInt(record.cost) === costE8) continue;
    const missingE8 = costE8 - BigInt(record?.cost ?? 0);
    const shortE8 = shortfalls.get(record?.entry ?? '') ?? 0n;
    if (record?.billing === 'expired') afterLease += 1;
    // A repeated settle after the loss of its hold charges the available money and no more.
    else if (record !== undefined && missingE8 > 0n && missingE8 <= shortE8) {
      shortfalls.set(record.entry, shortE8 - missingE8);
      inPart += 1;
    } else lost.push(`call ${requestId}: told ${costE8}, charged ${record?.cost ?? 'nothing, no record'}`);
  }
  lost.push(...(await lostCredits(database, credits)));
  const [sums] = await rowsOf<Sums>(database, SUMS);
  const [repeated] = await rowsOf<{ twice: number }>(database, TWICE);
  const [exceeded] = await rowsOf<{ exceeded: number }>(database, EXCEEDED);
  const [gaps] = await rowsOf<{ gaps: number }>(database, GAPS);
  return {
    entries: sums?.entries ?? 0,
    reports: sums?.reports ?? 0,
    reportedCalls: sums?.reportedCalls ?? 0,
    charges: sums?.charges ?? 0,
    records: records.length,
    lost,
    afterLease,
    inPart,
    twice: repeated?.twice ?? 0,
    gaps: gaps?.gaps ?? 0,
    exceeded: exceeded?.exceeded ?? 0,
    differences: differencesOf(sums),
  };
}

async function lostCredits(database: Knex, credits: ReadonlyMap<string, bigint>): Promise<readonly string[]> {
  const rows = await rowsOf<{ key: string; amount: string }>(
    database,
    `SELECT credits.idempotency_key AS key, entry.amount_e8::text AS amount FROM credits
     JOIN ledger_entries AS entry ON entry.rid = credits.id AND entry.kind = 'credit'`,
  );
  const booked = new Map(rows.map(({ key, amount }) => [key, BigInt(amount)]));
  return [...credits].flatMap(([key, amountE8]) =>
    booked.get(key) === amountE8 ? [] : [`credit ${key}: told ${amountE8}, booked ${booked.get(key) ?? 'nothing'}`],
  );
}

interface Sums {
  readonly entries: number;
  readonly charges: number;
  readonly reports: number;
  readonly reportedCalls: number;
  readonly closed: string;
  readonly closedRecords: string;
  readonly charged: string;
  readonly recorded: string;
  readonly credited: string;
  readonly booked: string;
  readonly owned: string;
  readonly total: string;
}

const SUMS = `
  SELECT count(*)::int AS entries, count(*) FILTER (WHERE kind = 'charge')::int AS charges,
    count(calls)::int AS reports,
    (SELECT count(*)::int FROM usage_records WHERE report_id IS NOT NULL) AS "reportedCalls",
    coalesce(sum(coalesce(calls, 1)) FILTER (WHERE of_call), 0)::text AS closed,
    (SELECT count(*)::text FROM usage_records WHERE rid IS NOT NULL) AS "closedRecords",
    coalesce(-sum(amount_e8) FILTER (WHERE kind = 'charge'), 0)::text AS charged,
    (SELECT coalesce(sum(cost_e8), 0)::text FROM usage_records) AS recorded,
    (SELECT coalesce(sum(amount_e8), 0)::text FROM credits) AS credited,
    coalesce(sum(amount_e8) FILTER (WHERE kind = 'credit'), 0)::text AS booked,
    (SELECT coalesce(sum(last.posted_e8), 0)::text FROM accounts
     JOIN LATERAL (SELECT posted_e8 FROM ledger_entries WHERE account_id = accounts.id ORDER BY seq DESC LIMIT 1) AS last
       ON true) AS owned,
    coalesce(sum(amount_e8), 0)::text AS total
  FROM ledger_entries`;

/** Selects the records with the entry of their call, or that of its report. */
const RECORDS = `
  SELECT request_id AS "requestId", coalesce(report_id, rid)::text AS entry, cost_e8::text AS cost, billing FROM usage_records`;

const SHORTFALLS = `SELECT rid::text, shortfall_e8::text AS shortfall FROM ledger_entries WHERE shortfall_e8 > 0`;

const TWICE = `
  SELECT ((SELECT count(*) FROM (SELECT rid FROM ledger_entries GROUP BY account_id, rid HAVING count(*) > 1) AS entries)
    + (SELECT count(*) FROM (SELECT request_id FROM usage_records GROUP BY request_id HAVING count(*) > 1) AS records)
    + (SELECT count(*) FROM (SELECT rid FROM usage_records WHERE rid IS NOT NULL GROUP BY account_id, rid HAVING count(*) > 1) AS calls)
    + (SELECT count(*) FROM usage_records AS record JOIN ledger_entries AS entry USING (account_id, rid)
       WHERE record.report_id IS NOT NULL))::int AS twice`;

const EXCEEDED = `
  SELECT ((SELECT count(*) FROM ledger_entries WHERE posted_e8 < 0)
    + (SELECT count(*) FROM budgets WHERE "window" = 'total'
       AND limit_e8 < (SELECT sum(spent_e8) FROM scope_spending AS spending WHERE spending.scope = budgets.scope)))::int
    AS exceeded`;

const GAPS = `
  SELECT count(*)::int AS gaps FROM (
    SELECT seq, lag(seq, 1, 0::bigint) OVER (PARTITION BY account_id ORDER BY seq) AS before FROM ledger_entries
  ) AS chain WHERE seq <> before + 1`;

function differencesOf(sums: Sums | undefined): readonly string[] {
  if (sums === undefined) return ['there are no entries'];
  const { charged, recorded, closed, closedRecords, credited, booked, owned, total } = sums;
  return [
    ...(charged === recorded ? [] : [`charges ${charged}, usage records ${recorded}`]),
    ...(closed === closedRecords ? [] : [`calls of entries ${closed}, their usage records ${closedRecords}`]),
    ...(credited === booked ? [] : [`credits ${credited}, their entries ${booked}`]),
    ...(owned === total ? [] : [`balances ${owned}, all entries ${total}`]),
  ];
}

async function rowsOf<T>(database: Knex, query: string): Promise<T[]> {
  return (await database.raw<{ rows: T[] }>(query)).rows;
}
