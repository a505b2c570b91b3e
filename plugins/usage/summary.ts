import type { Knex } from 'knex';
import { formatUsd } from '../../core/money';
import { narrow, type UsageFilters } from './query';

/** What many records come to: totals, and the chart of them. */

/**
 * Part of the time that is looked at: what lies in it counts to `bucket`. The database reads one slot after the other from the
 * index that holds what is summed; asked for all of them at once, it expects as many groups as records, and sorts them.
 */
interface Slot {
  readonly from: string;
  readonly to: string;
  readonly bucket: number;
}

const SLOTS = 'unnest(:froms::timestamptz[], :tos::timestamptz[], :buckets::int[]) AS slot (from_at, to_at, bucket)';

/** In three digits, which is exact below a second: there are few enough of these to count each. */
const ROUNDED_FIRST_TOKEN_MS = `CASE WHEN usage.first_token_ms < 1000 THEN usage.first_token_ms
  WHEN usage.first_token_ms < 10000 THEN usage.first_token_ms / 10 * 10 ELSE usage.first_token_ms / 100 * 100 END`;

/** The least time that so much of a bucket's calls took at most, from how many took which. */
const PERCENTILES = (counted: string) => `
  WITH counted AS (${counted})
  SELECT bucket, min(ms) FILTER (WHERE upto >= 0.5 * calls) AS p50, min(ms) FILTER (WHERE upto >= 0.9 * calls) AS p90,
    min(ms) FILTER (WHERE upto >= 0.99 * calls) AS p99
  FROM (SELECT bucket, ms, sum(calls) OVER (PARTITION BY bucket ORDER BY ms) AS upto,
          sum(calls) OVER (PARTITION BY bucket) AS calls
        FROM counted) AS summed
  GROUP BY bucket`;

interface PercentileRow {
  readonly bucket: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Sums of BIGINT come as text. */
interface TotalsRow {
  readonly calls: bigint;
  readonly failed: bigint;
  readonly cost_e8: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly cache_creation_tokens: string;
  readonly cache_read_tokens: string;
  readonly total_tokens: string;
}

const SUMMED = [
  'cost_e8',
  'input_tokens',
  'output_tokens',
  'cache_creation_tokens',
  'cache_read_tokens',
  'total_tokens',
] as const;

/** In one go: of so few groups the database knows by itself how to add them up, with several workers where it has them. */
export async function readTotals(database: Knex, filters: UsageFilters) {
  const sums = SUMMED.map((column) => `coalesce(sum(usage.${column}), 0)::text AS ${column}`);
  const failed = 'count(*) FILTER (WHERE usage.status >= 400 OR usage.error_code IS NOT NULL) AS failed';
  const firstTokenCounts = firstTokensOf(database, recordsOf(database, filters)).select(database.raw('1 AS bucket'));
  const [found, { rows: percentiles }]: [TotalsRow | undefined, { rows: readonly PercentileRow[] }] = await Promise.all(
    [
      recordsOf(database, filters).first(database.raw(['count(*) AS calls', failed, ...sums].join())),
      database.raw(PERCENTILES(':found'), { found: firstTokenCounts as never }),
    ],
  );
  if (found === undefined) throw new Error('a count has no row');
  const [firstTokens] = percentiles;
  return {
    calls: Number(found.calls),
    failed: Number(found.failed),
    costUsd: formatUsd(BigInt(found.cost_e8)),
    inputTokens: Number(found.input_tokens),
    outputTokens: Number(found.output_tokens),
    cacheCreationTokens: Number(found.cache_creation_tokens),
    cacheReadTokens: Number(found.cache_read_tokens),
    totalTokens: Number(found.total_tokens),
    firstTokenMs: { p50: firstTokens?.p50 ?? null, p90: firstTokens?.p90 ?? null, p99: firstTokens?.p99 ?? null },
  };
}

/** What a chart tells apart. Written as the filters of lists are. */
const GROUPS = {
  none: `''`,
  model: `coalesce(usage.model, usage.model_requested, '')`,
  key: 'usage.key_id::text',
  upstream: `coalesce(usage.upstream, '')`,
} as const;

export type GroupedBy = keyof typeof GROUPS;

export const GROUPED_BY = ['model', 'key', 'upstream'] as const satisfies readonly GroupedBy[];

/** More lines than these nobody tells apart. */
const GROUPS_AT_MOST = 8;

/** The dearest groups by themselves, and what is left of the others together. */
const CELLS = `
  WITH cell AS MATERIALIZED (
    SELECT slot.bucket, found.* FROM ${SLOTS} CROSS JOIN LATERAL :found AS found),
  dearest AS (
    SELECT name FROM cell GROUP BY name ORDER BY sum(cost_e8) DESC, sum(calls) DESC, name LIMIT ${GROUPS_AT_MOST})
  SELECT cell.bucket, dearest.name, sum(calls)::bigint AS calls, sum(cost_e8)::bigint AS cost_e8
  FROM cell LEFT JOIN dearest USING (name) GROUP BY cell.bucket, dearest.name`;

interface CellRow {
  /** From 1. */
  readonly bucket: number;
  /** null: of all others. */
  readonly name: string | null;
  readonly calls: bigint;
  readonly cost_e8: bigint;
}

export interface SeriesGroup {
  readonly id: string | null;
  readonly name: string;
  readonly calls: readonly number[];
  readonly costUsd: readonly string[];
  readonly totalCalls: number;
  readonly totalCostUsd: string;
}

/** Calls, cost and first tokens in the intervals that begin at `starts`, inside the range of the filters. */
export async function readSeries(
  database: Knex,
  filters: UsageFilters & { readonly from: Date; readonly to: Date },
  starts: readonly number[],
  by: GroupedBy,
) {
  const slots = starts.map((startMs, index) => ({
    from: toTime(Math.max(startMs, filters.from.getTime())),
    to: toTime(starts[index + 1] ?? filters.to.getTime()),
    bucket: index + 1,
  }));
  const records = recordsIn(database, filters)
    .select(database.raw(`${GROUPS[by]} AS name, count(*) AS calls, sum(usage.cost_e8) AS cost_e8`))
    .groupByRaw('1');
  const [{ rows: cells }, percentiles] = await Promise.all([
    askSlots<CellRow>(database, CELLS, slots, records),
    readPercentiles(database, filters, slots),
  ]);
  const firstTokens = new Map(percentiles.map((row) => [row.bucket, row]));
  const quantile = (name: 'p50' | 'p90' | 'p99') =>
    starts.map((_, index) => firstTokens.get(index + 1)?.[name] ?? null);
  return {
    groups: await nameGroups(database, by, toGroups(cells, starts.length)),
    firstTokenMs: { p50: quantile('p50'), p90: quantile('p90'), p99: quantile('p99') },
  };
}

interface Group {
  readonly id: string | null;
  readonly calls: number[];
  readonly costE8: bigint[];
}

/** Dearest first, the rest last. */
function toGroups(cells: readonly CellRow[], length: number): readonly Group[] {
  const groups = new Map<string | null, Group>();
  for (const { bucket, name, calls, cost_e8: costE8 } of cells) {
    const group = groups.get(name) ?? { id: name, calls: Array(length).fill(0), costE8: Array(length).fill(0n) };
    groups.set(name, group);
    group.calls[bucket - 1] = Number(calls);
    group.costE8[bucket - 1] = costE8;
  }
  const rank = ({ id, calls, costE8 }: Group) => [id === null ? 1n : 0n, -total(costE8), BigInt(-sum(calls))] as const;
  return [...groups.values()].sort((one, other) => {
    const others = rank(other);
    const difference = rank(one)
      .map((value, index) => value - (others[index] ?? 0n))
      .find((each) => each !== 0n);
    return Number(difference ?? 0n);
  });
}

async function nameGroups(database: Knex, by: GroupedBy, groups: readonly Group[]): Promise<readonly SeriesGroup[]> {
  const names =
    by === 'key'
      ? await keyNames(
          database,
          groups.flatMap(({ id }) => id ?? []),
        )
      : undefined;
  return groups.map(({ id, calls, costE8 }) => ({
    id,
    name: id === null ? 'other' : (names?.get(id) ?? (id === '' ? (by === 'none' ? 'all' : 'none') : id)),
    calls,
    costUsd: costE8.map(formatUsd),
    totalCalls: sum(calls),
    totalCostUsd: formatUsd(total(costE8)),
  }));
}

async function keyNames(database: Knex, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rows: { id: string; name: string }[] = await database('api_keys').whereIn('id', ids).select('id', 'name');
  return new Map(rows.map(({ id, name }) => [id, name]));
}

async function readPercentiles(
  database: Knex,
  filters: UsageFilters,
  slots: readonly Slot[],
): Promise<readonly PercentileRow[]> {
  const counted = `SELECT slot.bucket, found.* FROM ${SLOTS} CROSS JOIN LATERAL :found AS found`;
  const found = firstTokensOf(database, recordsIn(database, filters));
  return (await askSlots<PercentileRow>(database, PERCENTILES(counted), slots, found)).rows;
}

/** How many calls took how long. */
function firstTokensOf(database: Knex, records: Knex.QueryBuilder): Knex.QueryBuilder {
  return records
    .whereNotNull('usage.first_token_ms')
    .select(database.raw(`${ROUNDED_FIRST_TOKEN_MS} AS ms, count(*) AS calls`))
    .groupByRaw('1');
}

/** The records of a slot that the filters find. */
function recordsIn(database: Knex, filters: UsageFilters): Knex.QueryBuilder {
  return recordsOf(database, { ...filters, from: undefined, to: undefined }).whereRaw(
    'usage.created_at >= slot.from_at AND usage.created_at < slot.to_at',
  );
}

function recordsOf(database: Knex, filters: UsageFilters): Knex.QueryBuilder {
  const query = database('usage_records as usage');
  narrow(query, filters);
  return query;
}

async function askSlots<Row>(database: Knex, query: string, slots: readonly Slot[], found: Knex.QueryBuilder) {
  return database.raw<{ rows: readonly Row[] }>(query, {
    froms: slots.map(({ from }) => from),
    tos: slots.map(({ to }) => to),
    buckets: slots.map(({ bucket }) => bucket),
    found: found as never,
  });
}

function toTime(atMs: number): string {
  return new Date(atMs).toISOString();
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, each) => all + each, 0);
}

function total(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, each) => all + each, 0n);
}
