import { mapValues } from '../base/collections';

interface MeterFacts {
  /** The group to which this meter's tokens belong in a usage record: fresh input, cache read, cache write or output. */
  readonly counts: 'fresh' | 'cacheRead' | 'cacheWrite' | 'output';
  /** The description of the meter's price in the schema of the settings. */
  readonly description: string;
  /** The meter whose price applies if this meter has no price. */
  readonly fallback?: string;
  /** Whether every displayed price includes this meter. Other meters are displayed only if they have their own price. */
  readonly isUsual?: true;
}

/** The token meters, by the names that prices use. Settings, displayed prices and the schemas of both derive from this table. */
export const METERS = {
  input: { counts: 'fresh', description: 'Decimal USD per million tokens.', isUsual: true },
  output: { counts: 'output', description: 'Decimal USD per million tokens.', isUsual: true },
  cacheWrite: {
    counts: 'cacheWrite',
    description: 'Writing to the cache, USD per million tokens; default: as input.',
    fallback: 'input',
    isUsual: true,
  },
  cacheWrite1h: {
    counts: 'cacheWrite',
    description: 'Writing to the one-hour cache; default: as cacheWrite.',
    fallback: 'cacheWrite',
    isUsual: true,
  },
  cacheRead: {
    counts: 'cacheRead',
    description: 'Reading from the cache; default: as input.',
    fallback: 'input',
    isUsual: true,
  },
  audioInput: { counts: 'fresh', description: 'Spoken input.' },
  audioCacheRead: {
    counts: 'cacheRead',
    description: 'Reading spoken input from the cache; default: as audioInput.',
    fallback: 'audioInput',
  },
  audioOutput: { counts: 'output', description: 'Spoken output.' },
  imageInput: { counts: 'fresh', description: 'Images, where the upstream counts their tokens apart.' },
  imageOutput: { counts: 'output', description: 'Images it makes.' },
} as const satisfies Readonly<Record<string, MeterFacts>>;

export type TokenMeter = keyof typeof METERS;

/** The meters of input tokens that are not read from a cache or written to one. */
export const FRESH_METERS = metersOf('fresh');
export const CACHE_READ_METERS = metersOf('cacheRead');
export const CACHE_WRITE_METERS = metersOf('cacheWrite');
/** All meters of input tokens, including cache reads and writes. */
export const INPUT_METERS = [...FRESH_METERS, ...CACHE_READ_METERS, ...CACHE_WRITE_METERS] as const;
/** All meters of output tokens. */
export const OUTPUT_METERS = metersOf('output');
export const TOKEN_METERS = [...INPUT_METERS, ...OUTPUT_METERS] as const;

type MetersOf<C> = { [M in TokenMeter]: (typeof METERS)[M]['counts'] extends C ? M : never }[TokenMeter];

function metersOf<const C extends MeterFacts['counts']>(counts: C): readonly MetersOf<C>[] {
  const meters = Object.keys(METERS) as TokenMeter[];
  return meters.filter((meter) => METERS[meter].counts === counts) as MetersOf<C>[];
}

/** Returns an object with one member for each meter, whose value `make` returns. */
export function byMeter<T>(make: (facts: MeterFacts, meter: TokenMeter) => T): Record<TokenMeter, T> {
  return mapValues(METERS, (facts, meter) => make(facts, meter as TokenMeter)) as Record<TokenMeter, T>;
}

/** The name of what is counted: tokens, or pieces such as `webSearch`. Adapters report meters and prices name them; packages may add meters. */
export type Meter = TokenMeter | (string & {});

/** Counts by meter. An absent or undefined count is unknown and never 0. */
export type Counts = ReadonlyMap<Meter, number | undefined>;

/** One run of one model inside a call. */
export interface Pass {
  /** The upstream's name of the model; undefined if it is the requested model. */
  readonly model?: string | undefined;
  /** The service tier, speed and region that the answer reports; undefined: the plain price applies. */
  readonly tier?: string | undefined;
  readonly speed?: string | undefined;
  readonly geo?: string | undefined;
  readonly counts: Counts;
}

/** The properties of an answer, apart from its counts, that can change its price. */
export const VARIANTS = ['tier', 'speed', 'geo'] as const satisfies readonly (keyof Pass)[];

const PASS_MEMBERS = [...VARIANTS, 'model'] as const;

/** The usage of a call, as the upstream reports it. */
export interface Usage {
  /** The model runs of the call: one, unless the upstream reports more; empty if nothing is known. */
  readonly passes: readonly Pass[];
  /** The region in which the upstream says it processed the call; absent if it says none. */
  readonly region?: string | undefined;
  /** How many of the output tokens were reasoning; absent if unknown. */
  readonly reasoning?: number;
  /** The paths of numbers in the report that no meter counts. They are never charged. */
  readonly unknown?: readonly string[];
  /** The counts that contradict other counts of this or an earlier report. They are not charged. */
  readonly suspect?: readonly string[];
}

/** The usage of a call whose upstream reported nothing. */
export const UNKNOWN_USAGE: Usage = { passes: [] };

/** Returns the region in which the upstream says it processed a call; undefined if it says none. */
export function reportedRegion({ region, passes }: Usage): string | undefined {
  return region ?? passes.find(({ geo }) => geo !== undefined)?.geo;
}

/** Returns the counts as a map, without undefined ones. */
export function countsOf(counts: Readonly<Partial<Record<Meter, number | undefined>>>): Counts {
  const known = new Map<Meter, number>();
  for (const meter in counts) {
    const count = counts[meter];
    if (count !== undefined) known.set(meter, count);
  }
  return known;
}

/** Returns the usage of a call with one run of the model (a pass), from its counts. */
export function usageOf(counts: Readonly<Partial<Record<Meter, number | undefined>>>): Usage {
  return { passes: [{ counts: countsOf(counts) }] };
}

/** Returns the sum of these meters in all passes (runs of a model); undefined if no count of them is known. */
export function tokensOf({ passes }: Usage, meters: readonly Meter[]): number | undefined {
  let sum: number | undefined;
  for (const { counts } of passes) {
    for (const meter of meters) {
      const count = counts.get(meter);
      if (count !== undefined) sum = (sum ?? 0) + count;
    }
  }
  return sum;
}

/** Returns all input tokens of a call, including cache reads and writes; 0 if unknown. */
export function totalInputTokens(usage: Usage): number {
  return tokensOf(usage, INPUT_METERS) ?? 0;
}

/** Returns all output tokens; undefined if none were reported. */
export function outputTokens(usage: Usage): number | undefined {
  return tokensOf(usage, OUTPUT_METERS);
}

/** Returns the sums of the known counts of all passes (runs of a model), by meter. */
export function countsIn({ passes }: Usage): Readonly<Partial<Record<Meter, number>>> {
  const sums: Partial<Record<Meter, number>> = {};
  for (const { counts } of passes)
    for (const [meter, count] of counts) if (count !== undefined) sums[meter] = (sums[meter] ?? 0) + count;
  return sums;
}

/**
 * Merges two usage reports of one stream. The new report's input counts replace all earlier input counts, unless the new report has no
 * input counts. The same rule applies to the output counts.
 */
export function mergeUsage(before: Usage, now: Usage): Usage {
  if (now.passes.length === 0) return before;
  if (before.passes.length === 0) return now;
  // Ignores a report with fewer passes (runs of a model). Only the last report has all passes, because compaction and fallbacks add some.
  if (before.passes.length > now.passes.length) return before;
  if (replaces(now, before)) return now;
  const [known, latest] = [inputOf(before), inputOf(now)];
  // A new report with no input tokens, or with 0, keeps the earlier input counts. If both inputs are equal, the more detailed report is used.
  const isKept = latest ? known === latest && detailsOf(before) > detailsOf(now) : known !== undefined;
  const inputFrom = isKept ? before : now;
  const outputFrom = outputTokens(now) === undefined ? before : now;
  const isSame = before.passes.length === now.passes.length;
  const passes = now.passes.map((pass, at) => {
    const earlier = before.passes[at] ?? before.passes[0] ?? pass;
    const counts = new Map<Meter, number>();
    if (isSame) copyCounts(counts, PIECES, earlier);
    copyCounts(counts, PIECES, pass);
    copyCounts(counts, INPUTS, inputFrom.passes[at] ?? pass);
    copyCounts(counts, OUTPUTS, outputFrom.passes[at] ?? pass);
    const merged = { ...pass, counts };
    for (const member of isSame ? PASS_MEMBERS : VARIANTS)
      if (earlier[member] !== undefined) merged[member] ??= earlier[member];
    return merged;
  });
  const reasoning = now.reasoning ?? before.reasoning;
  const region = now.region ?? before.region;
  const unknown = both(before.unknown, now.unknown);
  const isSmaller = inputFrom === now && (latest ?? 0) < (known ?? 0);
  const suspect = both(both(before.suspect, now.suspect), isSmaller ? ['smaller input'] : undefined);
  return {
    passes,
    ...(region !== undefined && { region }),
    ...(reasoning !== undefined && { reasoning }),
    ...(unknown !== undefined && { unknown }),
    ...(suspect !== undefined && { suspect }),
  };
}

/**
 * Returns whether the new report can replace the earlier one: no member is missing, and no count is smaller. This check handles most
 * reports without a merge. That saves time, because some streams have a report in each event.
 */
function replaces(now: Usage, before: Usage): boolean {
  const [pass, ...others] = now.passes;
  const [earlier] = before.passes;
  if (pass === undefined || earlier === undefined || others.length > 0 || before.passes.length > 1) return false;
  if (before.unknown !== undefined || before.suspect !== undefined) return false;
  if (before.reasoning !== undefined && now.reasoning === undefined) return false;
  if (before.region !== undefined && now.region === undefined) return false;
  for (const member of PASS_MEMBERS) if (earlier[member] !== undefined && pass[member] === undefined) return false;
  for (const [meter, count = 0] of earlier.counts) if ((pass.counts.get(meter) ?? -1) < count) return false;
  // An input of 0 tokens does not count as reported.
  return (pass.counts.get('input') ?? 0) > 0;
}

function both<T>(one: readonly T[] | undefined, other: readonly T[] | undefined): readonly T[] | undefined {
  return one === undefined || other === undefined ? (one ?? other) : [...new Set([...one, ...other])];
}

/** Returns the sum of all input tokens; undefined if a pass (one run of a model) lacks the meter `input`. */
function inputOf(usage: Usage): number | undefined {
  return usage.passes.every(({ counts }) => counts.get('input') !== undefined) ? totalInputTokens(usage) : undefined;
}

/** Returns how many counts above 0 belong to other input meters than `input`, such as cache reads. */
function detailsOf({ passes }: Usage): number {
  let details = 0;
  for (const { counts } of passes)
    for (const [meter, count = 0] of counts) if (count > 0 && meter !== 'input' && INPUTS.has(meter)) details += 1;
  return details;
}

const INPUTS = new Set<Meter>(INPUT_METERS);
const OUTPUTS = new Set<Meter>(OUTPUT_METERS);
const PIECES = { has: (meter: Meter) => !INPUTS.has(meter) && !OUTPUTS.has(meter) };

function copyCounts(into: Map<Meter, number>, meters: { has(meter: Meter): boolean }, { counts }: Pass): void {
  for (const [meter, count] of counts) if (count !== undefined && meters.has(meter)) into.set(meter, count);
}

/** How many UTF-8 bytes of an answer count as one token if the upstream reports no usage; docs/contract.md, section 6. */
const BYTES_PER_TOKEN = 4;

export function estimatedOutput(contentBytes: number): number {
  return Math.ceil(contentBytes / BYTES_PER_TOKEN);
}

/** Returns the usage with `output` instead of the reported output. All of it is in the first pass (run of a model); the input stays unchanged. */
export function withOutput({ passes, reasoning: _, ...notes }: Usage, output: number | undefined): Usage {
  const [first, ...others] = passes.map((pass) => {
    const counts = new Map(pass.counts);
    for (const meter of OUTPUT_METERS) counts.delete(meter);
    return { ...pass, counts };
  });
  const own = first ?? { counts: new Map<Meter, number>() };
  if (output !== undefined) own.counts.set('output', output);
  return { ...notes, passes: [own, ...others] };
}
