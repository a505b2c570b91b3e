import type { Knex } from 'knex';
import { narrow, type UsageFilters } from './usage-filters';

/**
 * The sums of usage records. A query reads whole hours from `usage_sums` (migrations/0003-usage-records.ts), as far as
 * core/records/usage-roll-up.ts has summed them. It reads newer records and partly covered hours one by one. A query that names two of key,
 * model and upstream, or anything else that a record has, such as a session or a tag, reads all records one by one. One statement reads sums
 * and records, so that each record counts exactly once.
 */

/** A range of time in a query. `-Infinity` and `Infinity` mean no bound. */
export interface Slot {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The conditions on usage records, besides the time slots of a query. */
export type SumFilters = Omit<UsageFilters, 'from' | 'to'>;

export interface Sums extends Readonly<Record<Measure, bigint>> {
  /** How many calls had their first token in each latency class; see `FIRST_TOKEN_BOUNDS_MS`. */
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

/** The bounds between latency classes, as in migrations/0003-usage-records.ts. The first class is below the first bound; the last begins at the last bound. */
export const FIRST_TOKEN_BOUNDS_MS = Array.from({ length: 53 }, (_, at) => Math.round(2 ** (4 + at / 4)));
const CLASSES = FIRST_TOKEN_BOUNDS_MS.length + 1;
const FIRST_TOKENS = Array.from(
  { length: CLASSES },
  (_, at) => `sum(usage.first_token_${String(at).padStart(2, '0')})`,
);

/** The expressions by which records are grouped in `usage_sums`, the same for the records themselves. */
const SUMMED_NAMES = {
  none: `''`,
  model: `coalesce(usage.model, usage.model_requested, '')`,
  key: 'usage.key_id::text',
  upstream: `coalesce(usage.upstream, '')`,
} as const;
type SummedBy = keyof typeof SUMMED_NAMES;

/** The expressions by which totals and charts are grouped; an empty text stands for a record that has no value. */
const USAGE_NAMES = {
  ...SUMMED_NAMES,
  team: `coalesce(usage.team_id::text, '')`,
  member: `coalesce(usage.member_id::text, '')`,
  region: `coalesce(usage.region, '')`,
  session: `coalesce(usage.session_id, '')`,
  agent: `coalesce(usage.agent_id, '')`,
  endUser: `coalesce(usage.end_user_id, '')`,
} as const;

/** What totals and charts are grouped by: a field of records, or a tag by its name, such as `tag:customer`. */
export type GroupedBy = keyof typeof USAGE_NAMES | `tag:${string}`;

const TAG = /^tag:([a-z0-9_]+)$/;

function nameOf(by: GroupedBy): string {
  const [, tag] = TAG.exec(by) ?? [];
  return tag === undefined ? USAGE_NAMES[by as keyof typeof USAGE_NAMES] : `coalesce(usage.tags->>'${tag}', '')`;
}

const SUMMED = MEASURES.map((name) => `coalesce(sum(usage.${name}), 0)::bigint AS ${name}`);

const COUNTED = [
  'sum(usage.calls) AS calls',
  'coalesce(sum(usage.calls) FILTER (WHERE usage.status >= 400 OR usage.error_code IS NOT NULL), 0) AS failed',
  ...SUMMED.slice(2),
  `width_bucket(usage.first_token_ms, '{${FIRST_TOKEN_BOUNDS_MS.join()}}'::int[]) AS class`,
];

/** A row of sums. A row for whole hours has the number of calls in each latency class; a row for single records has the latency class of its calls. */
type SumRow = Readonly<Record<Measure, bigint>> & {
  readonly slot: number;
  readonly classes: readonly (number | null)[] | null;
  readonly class: number | null;
};

/** Returns the sums of the calls in each slot, in the order of `slots`. */
export async function readSums(database: Knex, filters: SumFilters, slots: readonly Slot[]): Promise<readonly Sums[]> {
  const groupedBy = groupedByOf(filters);
  const summed = sumsOf(database, filters, groupedBy).select(
    database.raw([...SUMMED, `NULL::int AS class, ARRAY[${FIRST_TOKENS.join()}]::float8[] AS classes`].join()),
  );
  const counted = recordsOf(database, filters)
    .select(database.raw(`${COUNTED.join()}, NULL::float8[] AS classes`))
    .groupByRaw('class');
  const parts = splitSlots(slots, groupedBy);
  const { rows }: { rows: readonly SumRow[] } = await inSlots(database, parts, { summed, counted });
  const sums = slots.map(() => ({
    ...(Object.fromEntries(MEASURES.map((name) => [name, 0n])) as Record<Measure, bigint>),
    firstTokens: Array<number>(CLASSES).fill(0),
  }));
  for (const row of rows) {
    const sum = sums[row.slot];
    if (sum === undefined) throw new Error('the database returned a usage sum for a time slot outside the query');
    for (const name of MEASURES) sum[name] += row[name];
    const classes = row.classes?.entries() ?? (row.class === null ? [] : [[row.class, Number(row.calls)] as const]);
    for (const [at, calls] of classes) sum.firstTokens[at] = (sum.firstTokens[at] ?? 0) + (calls ?? 0);
  }
  return sums;
}

/** The calls and cost of one name in one time slot of a chart. The most expensive names have separate cells; `null` stands for all other names together. */
export interface UsageCell {
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
): Promise<readonly UsageCell[]> {
  const groupedBy = groupedByOf(filters, by);
  const summed = sumsOf(database, filters, groupedBy)
    .select(database.raw('usage.name, sum(usage.calls) AS calls, sum(usage.cost_e8) AS cost_e8'))
    .groupBy('usage.name');
  const counted = recordsOf(database, filters)
    .select(database.raw(`${nameOf(by)} AS name, sum(usage.calls) AS calls, sum(usage.cost_e8) AS cost_e8`))
    .groupByRaw('1');
  const found = inSlots(database, splitSlots(slots, groupedBy), { summed, counted });
  const { rows } = await database.raw<{ rows: readonly UsageCell[] }>(
    `WITH cell AS MATERIALIZED (
      SELECT slot, name, sum(calls) AS calls, sum(cost_e8) AS cost_e8
      FROM (:found) AS part GROUP BY slot, name),
    dearest AS (SELECT name FROM cell GROUP BY name ORDER BY sum(cost_e8) DESC, sum(calls) DESC, name LIMIT :most)
    SELECT cell.slot, dearest.name, sum(calls)::bigint AS calls, sum(cost_e8)::bigint AS cost_e8
    FROM cell LEFT JOIN dearest USING (name) GROUP BY cell.slot, dearest.name`,
    { found: found as never, most },
  );
  return rows;
}

/** Returns the grouping of `usage_sums` that a query can use; undefined if none fits. */
function groupedByOf(
  { account: _account, status: _status, key, model, upstream, ...others }: SumFilters,
  by: GroupedBy = 'none',
): SummedBy | undefined {
  if (!(by in SUMMED_NAMES) || Object.values(others).some((value) => value !== undefined)) return undefined;
  const wanted = { key, model, upstream };
  const apart = (['key', 'model', 'upstream'] as const).filter((name) => wanted[name] !== undefined || by === name);
  return apart.length > 1 ? undefined : (apart[0] ?? 'none');
}

interface PartOfSlot extends Slot {
  readonly slot: number;
}

const HOUR_MS = 3_600_000;

/** Splits time slots into whole hours and the partial hours at their ends. If no hourly sums fit the filters, all time counts as partial. */
function splitSlots(slots: readonly Slot[], groupedBy: SummedBy | undefined) {
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
  groupedBy: SummedBy | undefined,
): Knex.QueryBuilder {
  const names = { none: undefined, key: key && [key], model, upstream: upstream && [upstream] }[groupedBy ?? 'none'];
  const query = database('usage_sums as usage')
    .where({ 'usage.grouped_by': groupedBy ?? '' })
    .whereRaw('usage.hour >= part.from_at AND usage.hour < part.to_at');
  if (account !== undefined) query.where('usage.account_id', account);
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

/**
 * Returns a query that reads each part of the time slots on its own, through an index. If it read all parts at once, Postgres would expect
 * as many groups as records, and sort them. The query uses `max`, because otherwise Postgres would expect 2,000 rows of `usage_summed` and
 * compile the query for them.
 */
function inSlots(
  database: Knex,
  { whole, cut }: { readonly whole: readonly PartOfSlot[]; readonly cut: readonly PartOfSlot[] },
  { summed, counted }: { readonly summed: Knex.QueryBuilder; readonly counted: Knex.QueryBuilder },
): Knex.Raw {
  return database.raw(
    `WITH summed AS (SELECT max(until) AS until FROM usage_summed),
      whole AS (:whole),
      cut AS (:cut UNION ALL
        SELECT greatest(from_at, until), to_at, slot FROM whole CROSS JOIN summed WHERE until < to_at)
    SELECT part.slot, found.* FROM whole AS part CROSS JOIN LATERAL :summed AS found
    UNION ALL SELECT part.slot, found.* FROM cut AS part CROSS JOIN LATERAL :counted AS found`,
    {
      whole: partsOf(database, whole) as never,
      cut: partsOf(database, cut) as never,
      summed: summed as never,
      counted: counted as never,
    },
  );
}

function partsOf(database: Knex, parts: readonly PartOfSlot[]): Knex.Raw {
  return database.raw(
    'SELECT * FROM unnest(:froms::timestamptz[], :tos::timestamptz[], :slots::int[]) AS part (from_at, to_at, slot)',
    {
      froms: parts.map(({ fromMs }) => toTime(fromMs)),
      tos: parts.map(({ toMs }) => toTime(toMs)),
      slots: parts.map(({ slot }) => slot),
    },
  );
}

function toTime(atMs: number): string {
  if (Number.isFinite(atMs)) return new Date(atMs).toISOString();
  return atMs < 0 ? '-infinity' : 'infinity';
}
