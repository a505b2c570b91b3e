import { withQuery } from '../../api';

/** The filters other than the range, by their names in the page's address and in the interface. */
export const FILTERS = ['key', 'model', 'upstream', 'status', 'session', 'agent'] as const;

type Values = Readonly<Record<(typeof FILTERS)[number], string | undefined>>;

/** The filter of the records. The page's address contains it, so that users can save, send and return to it. */
export interface Filter extends Values {
  readonly range: Range;
}

export function isNarrowed(filter: Filter): boolean {
  return FILTERS.some((name) => filter[name] !== undefined);
}

function valuesOf(read: (name: (typeof FILTERS)[number]) => string | undefined): Values {
  return Object.fromEntries(FILTERS.map((name) => [name, read(name)])) as Values;
}

export type Range =
  | { readonly preset: Preset }
  | { readonly preset: undefined; readonly from: string | undefined; readonly to: string | undefined };

export const PRESETS = {
  '1h': { text: 'Last hour', hours: 1 },
  '24h': { text: 'Last 24 hours', hours: 24 },
  '7d': { text: 'Last 7 days', hours: 7 * 24 },
  '30d': { text: 'Last 30 days', hours: 30 * 24 },
  '90d': { text: 'Last 90 days', hours: 90 * 24 },
} as const;

export type Preset = keyof typeof PRESETS;

const STANDARD: Preset = '7d';

export function readFilter(query: URLSearchParams): Filter {
  return { range: readRange(query), ...valuesOf((name) => query.get(name) ?? undefined) };
}

function readRange(query: URLSearchParams): Range {
  const [from, to] = [query.get('from') ?? undefined, query.get('to') ?? undefined];
  if (from !== undefined || to !== undefined) return { preset: undefined, from, to };
  const preset = query.get('range') ?? '';
  return { preset: Object.hasOwn(PRESETS, preset) ? (preset as Preset) : STANDARD };
}

/** Returns the query parts of a range; undefined removes a part. */
export function writeRange(range: Range): Record<string, string | undefined> {
  if (range.preset === undefined) return { range: undefined, from: range.from, to: range.to };
  return { range: range.preset === STANDARD ? undefined : range.preset, from: undefined, to: undefined };
}

/** Returns the filter as the interface's query. A preset range has no end, so that it includes new records. */
export function toQuery(filter: Filter, nowMs: number): Readonly<Record<string, string | undefined>> {
  const { range } = filter;
  const times =
    range.preset === undefined
      ? { from: range.from, to: range.to }
      : { from: new Date(nowMs - PRESETS[range.preset].hours * 3_600_000).toISOString(), to: undefined };
  return { ...times, ...valuesOf((name) => filter[name]) };
}

export function pathOf(part: string, query: Readonly<Record<string, string | number | undefined>>): string {
  return withQuery(`usage${part}`, query);
}
