import type { Knex } from 'knex';
import { formatUsd } from '../../core/base/money';
import { listOf, object, objectWith, orNull, shape } from '../../core/http/shape';
import { narrow } from '../../core/records/usage-filters';
import {
  FIRST_TOKEN_BOUNDS_MS,
  type GroupedBy,
  readCells,
  readSums,
  type Slot,
  type SumFilters,
  type UsageCell,
} from '../../core/records/usage-sums';

/** The time range of a summary: totals, or the series of a chart. */

interface Range {
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

interface Percentiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
}

/** Reads the totals of the records that match the filters and, with `by`, their groups. */
export async function readTotals(database: Knex, { from, to, ...filters }: SumFilters & Range, by?: GroupedBy) {
  const slots = [{ fromMs: from?.getTime() ?? -Infinity, toMs: to?.getTime() ?? Infinity }];
  // All statements see the records as of one moment, so that the groups add up to the totals.
  const [sums, [firstTokenMs], groups] = await database.transaction(
    async (transaction) => {
      const [all] = await readSums(transaction, filters, slots);
      if (all === undefined) throw new Error('the query for usage sums returned no row');
      const percentiles = await readPercentiles(transaction, filters, slots, [all.firstTokens]);
      return [all, percentiles, by && (await readGroups(transaction, filters, slots, by))] as const;
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );
  return {
    calls: Number(sums.calls),
    failed: Number(sums.failed),
    costUsd: formatUsd(sums.cost_e8),
    inputTokens: Number(sums.input_tokens),
    outputTokens: Number(sums.output_tokens),
    cacheCreationTokens: Number(sums.cache_creation_tokens),
    cacheReadTokens: Number(sums.cache_read_tokens),
    totalTokens: Number(sums.total_tokens),
    firstTokenMs,
    ...(groups !== undefined && { groups }),
  };
}

/** How many groups totals show at most. Calls of all cheaper ones are one group, with the id null. */
const MOST_GROUPS = 1_000;

async function readGroups(database: Knex, filters: SumFilters, slots: readonly Slot[], by: GroupedBy) {
  const cells = await readCells(database, filters, slots, { by, most: MOST_GROUPS });
  const named = await nameGroups(database, by, toGroups(cells, slots.length));
  return named.map(({ id, name, totalCalls: calls, totalCostUsd: costUsd }) => ({ id, name, calls, costUsd }));
}

const GROUP = object({ id: orNull(shape.text), name: shape.text, calls: shape.integer, costUsd: shape.usd });

/** The JSON schema of the result of `readTotals`. */
export const TOTALS = objectWith(
  {
    calls: shape.integer,
    failed: shape.integer,
    costUsd: shape.usd,
    inputTokens: shape.integer,
    outputTokens: shape.integer,
    cacheCreationTokens: shape.integer,
    cacheReadTokens: shape.integer,
    totalTokens: shape.integer,
    firstTokenMs: object({ p50: orNull(shape.number), p90: orNull(shape.number), p99: orNull(shape.number) }),
  },
  { groups: listOf(GROUP) },
);

/** How many groups a chart shows at most, because more lines are hard to tell apart. */
const MAX_GROUPS = 8;

/** Reads calls, cost and times to the first token for the intervals that begin at `starts`, limited to the filters' range. */
export async function readSeries(
  database: Knex,
  { from, to, ...filters }: SumFilters & { readonly from: Date; readonly to: Date },
  starts: readonly number[],
  by: GroupedBy,
) {
  const slots = starts.map((startMs, index) => ({
    fromMs: Math.max(startMs, from.getTime()),
    toMs: starts[index + 1] ?? to.getTime(),
  }));
  const [cells, sums] = await Promise.all([
    readCells(database, filters, slots, { by, most: MAX_GROUPS }),
    readSums(database, filters, slots),
  ]);
  const percentiles = await readPercentiles(
    database,
    filters,
    slots,
    sums.map(({ firstTokens }) => firstTokens),
  );
  const quantile = (name: keyof Percentiles) => percentiles.map((each) => each[name]);
  return {
    groups: await nameGroups(database, by, toGroups(cells, starts.length)),
    firstTokenMs: { p50: quantile('p50'), p90: quantile('p90'), p99: quantile('p99') },
  };
}

const QUANTILES = listOf(orNull(shape.number));

/** The JSON schemas for the members of the object that `readSeries` returns. */
export const SERIES_FIELDS = {
  groups: listOf(
    object({
      id: orNull(shape.text),
      name: shape.text,
      calls: listOf(shape.integer),
      costUsd: listOf(shape.usd),
      totalCalls: shape.integer,
      totalCostUsd: shape.usd,
    } satisfies Record<keyof SeriesGroup, object>),
  ),
  firstTokenMs: object({ p50: QUANTILES, p90: QUANTILES, p99: QUANTILES }),
} satisfies Record<keyof Awaited<ReturnType<typeof readSeries>>, object>;

interface Group {
  readonly id: string | null;
  readonly calls: number[];
  readonly costE8: bigint[];
}

/** Sorts sums of usage into groups: the most expensive first, the group for all remaining keys or models last. */
function toGroups(cells: readonly UsageCell[], length: number): readonly Group[] {
  const groups = new Map<string | null, Group>();
  for (const { slot, name, calls, cost_e8: costE8 } of cells) {
    const group = groups.get(name) ?? { id: name, calls: Array(length).fill(0), costE8: Array(length).fill(0n) };
    groups.set(name, group);
    group.calls[slot] = Number(calls);
    group.costE8[slot] = costE8;
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

interface SeriesGroup {
  readonly id: string | null;
  readonly name: string;
  readonly calls: readonly number[];
  readonly costUsd: readonly string[];
  readonly totalCalls: number;
  readonly totalCostUsd: string;
}

async function nameGroups(database: Knex, by: GroupedBy, groups: readonly Group[]): Promise<readonly SeriesGroup[]> {
  const names = await namesOf(
    database,
    by,
    groups.flatMap(({ id }) => id || []),
  );
  return groups.map(({ id, calls, costE8 }) => ({
    id,
    name: id === null ? 'other' : (names?.get(id) ?? (id === '' ? (by === 'none' ? 'all' : 'none') : id)),
    calls,
    costUsd: costE8.map(formatUsd),
    totalCalls: sum(calls),
    totalCostUsd: formatUsd(total(costE8)),
  }));
}

/** The tables with the names of keys, teams and members. Other groups have their id as their name. */
const NAMES: Partial<Record<GroupedBy, readonly [table: string, column: string]>> = {
  key: ['api_keys', 'name'],
  team: ['teams', 'name'],
  member: ['users', 'email'],
};

async function namesOf(
  database: Knex,
  by: GroupedBy,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string> | undefined> {
  const [table, column] = NAMES[by] ?? [];
  if (table === undefined) return undefined;
  const rows: { id: string; name: string }[] = await database(table)
    .whereIn('id', ids)
    .select('id', `${column} as name`);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** How many records a query reads for exact percentiles at most. With more records, the number of calls in each range of times is precise enough. */
const MAX_ASKED = 5_000;

/** Returns the percentiles of each interval. `classes` counts the calls of each interval by range of the time to the first token. */
async function readPercentiles(
  database: Knex,
  filters: SumFilters,
  slots: readonly Slot[],
  classes: readonly (readonly number[])[],
): Promise<readonly Percentiles[]> {
  const measured = sum(classes.flat());
  const [first, last] = [slots[0], slots.at(-1)];
  if (measured === 0 || measured > MAX_ASKED || first === undefined || last === undefined)
    return classes.map(estimatePercentiles);
  const query = database('usage_records as usage').whereNotNull('usage.first_token_ms');
  narrow(query, { ...filters, from: toDate(first.fromMs), to: toDate(last.toMs) });
  const rows: { created_at: Date; first_token_ms: number }[] = await query.select('created_at', 'first_token_ms');
  const times = slots.map((): number[] => []);
  let slot = 0;
  for (const { created_at: at, first_token_ms: ms } of rows.sort((one, other) => +one.created_at - +other.created_at)) {
    while (+at >= (slots[slot]?.toMs ?? Infinity)) slot += 1;
    times[slot]?.push(ms);
  }
  return times.map(percentilesOf);
}

function toDate(atMs: number): Date | undefined {
  return Number.isFinite(atMs) ? new Date(atMs) : undefined;
}

/** Returns the exact percentiles: the smallest time that the given share of the calls did not exceed. */
function percentilesOf(times: readonly number[]): Percentiles {
  const sorted = times.toSorted((one, other) => one - other);
  return percentiles((share) => sorted[Math.ceil(share * sorted.length) - 1] ?? null);
}

/** Estimates percentiles from the number of calls in each range of times, as if the calls were spread evenly over the range. The error is below 10 %. */
function estimatePercentiles(classes: readonly number[]): Percentiles {
  const calls = sum(classes);
  return percentiles((share) => {
    let below = 0;
    const at = classes.findIndex((count) => {
      below += count;
      return below > 0 && below >= share * calls;
    });
    const count = classes[at];
    if (count === undefined) return null;
    const [from, to] = [FIRST_TOKEN_BOUNDS_MS[at - 1] ?? 0, FIRST_TOKEN_BOUNDS_MS[at]];
    // The highest range of times has no upper bound, so its lower bound is the estimate.
    if (to === undefined) return from;
    return Math.round(to - ((to - from) * (below - share * calls)) / count);
  });
}

function percentiles(of: (share: number) => number | null): Percentiles {
  return { p50: of(0.5), p90: of(0.9), p99: of(0.99) };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, each) => all + each, 0);
}

function total(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, each) => all + each, 0n);
}
