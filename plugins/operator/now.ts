import type { Knex } from 'knex';
import { Registry } from 'prom-client';
import { type Stores, unlessUnavailable } from '../../core/accounts/accounts';
import { cacheFor } from '../../core/base/cache-for';
import { forEachConcurrent } from '../../core/base/for-each-concurrent';
import { showMetrics } from '../../core/base/metrics';

/** How many past minutes the operator's page shows. */
export const MINUTES = 30;
const MINUTE_MS = 60_000;
/** The minimum time between two reads of the usage records, however many pages are open. */
const READ_EVERY_MS = 2_000;
const HELD_EVERY_MS = 10_000;
/** The maximum number of accounts whose holds are summed. The ledger has no sum of all holds, so every account has to be read. */
const MAX_ACCOUNTS = 2_000;
const AT_ONCE = 20;

export interface Minute {
  readonly start: Date;
  readonly calls: number;
  readonly failed: number;
  readonly costE8: bigint;
  /** The time within which 99 of 100 calls were answered. */
  readonly p99Ms: number | null;
}

interface MinuteRow {
  readonly start: Date;
  readonly calls: bigint;
  readonly failed: bigint;
  readonly cost_e8: bigint;
  readonly p99: number | null;
}

const COUNTED = [
  'coalesce(sum(calls), 0)::bigint AS calls',
  'coalesce(sum(calls) FILTER (WHERE status >= 400 OR error_code IS NOT NULL), 0)::bigint AS failed',
  'coalesce(sum(cost_e8), 0)::bigint AS cost_e8',
  'percentile_disc(0.99) WITHIN GROUP (ORDER BY response_time_ms) AS p99',
].join();

/**
 * Returns a function that reads the usage records of all nodes: one sum for the last sixty seconds, and one per recent minute. The minutes
 * are oldest first, and those without calls are included.
 */
export function readMinutes(database: Knex) {
  const since = (startMs: number) => database('usage_records').where('created_at', '>=', new Date(startMs));
  return cacheFor(READ_EVERY_MS, async () => {
    const nowMs = Date.now();
    const lastMs = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
    const starts = Array.from({ length: MINUTES }, (_, at) => lastMs - (MINUTES - 1 - at) * MINUTE_MS);
    const [lately, rows]: [MinuteRow | undefined, MinuteRow[]] = await Promise.all([
      since(nowMs - MINUTE_MS)
        .select(database.raw(COUNTED))
        .first(),
      since(starts[0] ?? lastMs)
        .groupBy('start')
        .select(database.raw(`date_trunc('minute', created_at) AS start, ${COUNTED}`)),
    ]);
    const found = new Map(rows.map((row) => [row.start.getTime(), row]));
    return {
      lately: toMinute(nowMs - MINUTE_MS, lately),
      minutes: starts.map((startMs) => toMinute(startMs, found.get(startMs))),
    };
  });
}

function toMinute(startMs: number, row: Omit<MinuteRow, 'start'> | undefined): Minute {
  return {
    start: new Date(startMs),
    calls: Number(row?.calls ?? 0),
    failed: Number(row?.failed ?? 0),
    costE8: row?.cost_e8 ?? 0n,
    p99Ms: row?.p99 ?? null,
  };
}

/**
 * Returns a function that sums the holds of all accounts in E8. The sum is undefined while the ledger is unavailable and where
 * there are too many accounts.
 */
export function heldByAll({ database, ledger }: Stores): () => Promise<bigint | undefined> {
  return cacheFor(HELD_EVERY_MS, async () => {
    const rows: { id: string }[] = await database('accounts')
      .select('id')
      .limit(MAX_ACCOUNTS + 1);
    if (rows.length > MAX_ACCOUNTS) return undefined;
    return unlessUnavailable(async () => {
      let heldE8 = 0n;
      await forEachConcurrent(rows, AT_ONCE, async ({ id }) => {
        heldE8 += (await ledger.readAccount(id))?.heldE8 ?? 0n;
      });
      return heldE8;
    });
  });
}

/** Reads the state of the worst worker's outbox: the age of its oldest entry that waits for Postgres, and how full the outbox is. */
export async function readOutbox(): Promise<{ readonly oldestSeconds: number; readonly memoryShare: number }> {
  const text = await showMetrics(Registry.PROMETHEUS_CONTENT_TYPE);
  const newest = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
  return {
    oldestSeconds: newest('tollgate_ledger_outbox_oldest_seconds'),
    memoryShare: newest('tollgate_ledger_outbox_share'),
  };
}
