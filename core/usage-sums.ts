import type { Knex } from 'knex';
import { narrow, type UsageFilters } from './usage-filters';

/**
 * What usage records come to: of whole hours from `usage_sums` (migrations/2026-11-21-total-usage-records.ts), of hours that a
 * range cuts, and where more than one of key, model and upstream is told apart, from the records themselves.
 */

/** Part of the time that is looked at; `-Infinity` and `Infinity` are no bounds. */
export interface Slot {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is looked for within the slots. */
export type SumFilters = Omit<UsageFilters, 'account' | 'from' | 'to'> & { readonly account: string };

export interface Sums extends Readonly<Record<Measure, bigint>> {
  /** How many calls had their first token within each class of times: see `FIRST_TOKEN_BOUNDS_MS`. */
  readonly firstTokens: readonly number[];
}

const MEASURES = [
  'calls',
  'failed',
  'cost_e8',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cache_creation_tokens',
  'cache_read_tokens',
] as const;
type Measure = (typeof MEASURES)[number];

/** The first class is below the first bound, the last one from the last bound on; as the migration has them. */
export const FIRST_TOKEN_BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const CLASSES = FIRST_TOKEN_BOUNDS_MS.length + 1;
const FIRST_TOKENS = Array.from(
  { length: CLASSES },
  (_, at) => `sum(usage.first_token_${String(at).padStart(2, '0')})`,
);

/** What sums and charts tell apart, as it is in the records and in `usage_sums`. */
const USAGE_NAMES = {
  none: `''`,
  model: `coalesce(usage.model, usage.model_requested, '')`,
  key: 'usage.key_id::text',
  upstream: `coalesce(usage.upstream, '')`,
} as const;
export type GroupedBy = keyof typeof USAGE_NAMES;

const SUMMED = MEASURES.map((name) => `coalesce(sum(usage.${name}), 0)::bigint AS ${name}`);

const COUNTED = [
  'count(*) AS calls',
  'count(*) FILTER (WHERE usage.status >= 400 OR usage.error_code IS NOT NULL) AS failed',
  ...SUMMED.slice(2),
  `width_bucket(usage.first_token_ms, '{${FIRST_TOKEN_BOUNDS_MS.join()}}'::int[]) AS class`,
];

type SumRow = Readonly<Record<Measure, bigint>> & { readonly slot: number };

/** Of each slot. */
export async function readSums(database: Knex, filters: SumFilters, slots: readonly Slot[]): Promise<readonly Sums[]> {
  const { whole, cut } = splitSlots(slots, groupedByOf(filters));
  const summed = sumsOf(database, filters, groupedByOf(filters)).select(
    database.raw([...SUMMED, `ARRAY[${FIRST_TOKENS.join()}]::float8[] AS classes`].join()),
  );
  const counted = recordsOf(database, filters).select(database.raw(COUNTED.join())).groupByRaw('class');
  const [wholes, cuts] = await Promise.all([
    askSlots<SumRow & { classes: readonly (number | null)[] }>(database, whole, summed),
    askSlots<SumRow & { class: number | null }>(database, cut, counted),
  ]);
  const sums = slots.map(() => ({
    ...(Object.fromEntries(MEASURES.map((name) => [name, 0n])) as Record<Measure, bigint>),
    firstTokens: Array<number>(CLASSES).fill(0),
  }));
  const add = (row: SumRow) => {
    const sum = sums[row.slot];
    if (sum === undefined) throw new Error('a sum of a slot nobody asked for');
    for (const name of MEASURES) sum[name] += row[name];
    return sum.firstTokens;
  };
  for (const row of wholes) {
    const firstTokens = add(row);
    for (const [at, calls] of row.classes.entries()) firstTokens[at] = (firstTokens[at] ?? 0) + (calls ?? 0);
  }
  for (const row of cuts) {
    const firstTokens = add(row);
    if (row.class !== null) firstTokens[row.class] = (firstTokens[row.class] ?? 0) + Number(row.calls);
  }
  return sums;
}

/** Calls and cost of each slot and name. The dearest names by themselves, and what is left of the others together: null. */
export interface Cell {
  readonly slot: number;
  readonly name: string | null;
  readonly calls: bigint;
  readonly cost_e8: bigint;
}

export async function readCells(
  database: Knex,
  filters: SumFilters,
  slots: readonly Slot[],
  { by, most }: { readonly by: GroupedBy; readonly most: number },
): Promise<readonly Cell[]> {
  const groupedBy = groupedByOf(filters, by);
  const { whole, cut } = splitSlots(slots, groupedBy);
  const summed = sumsOf(database, filters, groupedBy)
    .select(database.raw('usage.name, sum(usage.calls) AS calls, sum(usage.cost_e8) AS cost_e8'))
    .groupBy('usage.name');
  const counted = recordsOf(database, filters)
    .select(database.raw(`${USAGE_NAMES[by]} AS name, count(*) AS calls, sum(usage.cost_e8) AS cost_e8`))
    .groupByRaw('1');
  const { rows } = await database.raw<{ rows: readonly Cell[] }>(
    `WITH cell AS MATERIALIZED (
      SELECT slot, name, sum(calls) AS calls, sum(cost_e8) AS cost_e8
      FROM (SELECT * FROM (:whole) AS whole UNION ALL SELECT * FROM (:cut) AS cut) AS part GROUP BY slot, name),
    dearest AS (SELECT name FROM cell GROUP BY name ORDER BY sum(cost_e8) DESC, sum(calls) DESC, name LIMIT :most)
    SELECT cell.slot, dearest.name, sum(calls)::bigint AS calls, sum(cost_e8)::bigint AS cost_e8
    FROM cell LEFT JOIN dearest USING (name) GROUP BY cell.slot, dearest.name`,
    { whole: inSlots(database, whole, summed) as never, cut: inSlots(database, cut, counted) as never, most },
  );
  return rows;
}

/** The rows of `usage_sums` that hold what is told apart; undefined when it is more than one thing. */
function groupedByOf({ key, model, upstream }: SumFilters, by: GroupedBy = 'none'): GroupedBy | undefined {
  const wanted = { key, model, upstream };
  const apart = (['key', 'model', 'upstream'] as const).filter((name) => wanted[name] !== undefined || by === name);
  return apart.length > 1 ? undefined : (apart[0] ?? 'none');
}

interface PartOfSlot extends Slot {
  readonly slot: number;
}

const HOUR_MS = 3_600_000;

/** Whole hours, and what is left at the ends; all is left when there are no sums. */
function splitSlots(slots: readonly Slot[], groupedBy: GroupedBy | undefined) {
  const parts = { whole: [] as PartOfSlot[], cut: [] as PartOfSlot[] };
  for (const [slot, { fromMs, toMs }] of slots.entries()) {
    const [first, last] = [Math.ceil(fromMs / HOUR_MS) * HOUR_MS, Math.floor(toMs / HOUR_MS) * HOUR_MS];
    const cuts =
      groupedBy === undefined || first >= last
        ? [{ slot, fromMs, toMs }]
        : [
            { slot, fromMs, toMs: first },
            { slot, fromMs: last, toMs },
          ];
    if (groupedBy !== undefined && first < last) parts.whole.push({ slot, fromMs: first, toMs: last });
    parts.cut.push(...cuts.filter((part) => part.fromMs < part.toMs));
  }
  return parts;
}

function sumsOf(
  database: Knex,
  { account, key, model, upstream, status }: SumFilters,
  groupedBy: GroupedBy | undefined,
): Knex.QueryBuilder {
  const names = { none: undefined, key: key && [key], model, upstream: upstream && [upstream] }[groupedBy ?? 'none'];
  const query = database('usage_sums as usage')
    .where({ 'usage.account_id': account, 'usage.grouped_by': groupedBy ?? '' })
    .whereRaw('usage.hour >= part.from_at AND usage.hour < part.to_at');
  if (names) query.whereIn('usage.name', names);
  if (status !== undefined) query.where('usage.status', status);
  return query;
}

function recordsOf(database: Knex, filters: SumFilters): Knex.QueryBuilder {
  const query = database('usage_records as usage').whereRaw(
    'usage.created_at >= part.from_at AND usage.created_at < part.to_at',
  );
  narrow(query, filters);
  return query;
}

async function askSlots<Row>(
  database: Knex,
  parts: readonly PartOfSlot[],
  found: Knex.QueryBuilder,
): Promise<readonly Row[]> {
  return parts.length === 0 ? [] : (await inSlots(database, parts, found)).rows;
}

/**
 * The database reads one part after the other, each from the end of an index; asked for all of them at once, it expects as
 * many groups as records, and sorts them.
 */
function inSlots(database: Knex, parts: readonly PartOfSlot[], found: Knex.QueryBuilder): Knex.Raw {
  return database.raw(
    `SELECT part.slot, found.* FROM unnest(:froms::timestamptz[], :tos::timestamptz[], :slots::int[])
       AS part (from_at, to_at, slot) CROSS JOIN LATERAL :found AS found`,
    {
      froms: parts.map(({ fromMs }) => toTime(fromMs)),
      tos: parts.map(({ toMs }) => toTime(toMs)),
      slots: parts.map(({ slot }) => slot),
      found: found as never,
    },
  );
}

function toTime(atMs: number): string {
  if (Number.isFinite(atMs)) return new Date(atMs).toISOString();
  return atMs < 0 ? '-infinity' : 'infinity';
}
