import { mapValues } from '../map-values';

interface MeterFacts {
  /** The group of token counts in a record to which the meter belongs. */
  readonly counts: 'fresh' | 'cacheRead' | 'cacheWrite' | 'output';
  /** The description of its price in the schema of the settings. */
  readonly description: string;
  /** The meter whose price applies if this one has none of its own. */
  readonly fallback?: string;
  /** Whether every displayed price includes it; the others are displayed only with a price of their own. */
  readonly isUsual?: true;
}

/** The meters of tokens, by the words of a price. Settings, displayed prices and the schemas of both use this table. */
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

/** Meters of input tokens: fresh tokens, those read from a cache, and those written to one. */
export const FRESH_METERS = metersOf('fresh');
export const CACHE_READ_METERS = metersOf('cacheRead');
export const CACHE_WRITE_METERS = metersOf('cacheWrite');
/** All meters of input tokens. */
export const INPUT_METERS = [...FRESH_METERS, ...CACHE_READ_METERS, ...CACHE_WRITE_METERS] as const;
/** All meters of output tokens. */
export const OUTPUT_METERS = metersOf('output');
export const TOKEN_METERS = [...INPUT_METERS, ...OUTPUT_METERS] as const;

type MetersOf<C> = { [M in TokenMeter]: (typeof METERS)[M]['counts'] extends C ? M : never }[TokenMeter];

function metersOf<const C extends MeterFacts['counts']>(counts: C): readonly MetersOf<C>[] {
  const meters = Object.keys(METERS) as TokenMeter[];
  return meters.filter((meter) => METERS[meter].counts === counts) as MetersOf<C>[];
}

/** Returns one value for each meter. */
export function byMeter<T>(make: (facts: MeterFacts, meter: TokenMeter) => T): Record<TokenMeter, T> {
  return mapValues(METERS, (facts, meter) => make(facts, meter as TokenMeter)) as Record<TokenMeter, T>;
}

/** What is counted: tokens, or pieces such as `webSearch`. An adapter reports meters and a price names them; a package may add others. */
export type Meter = TokenMeter | (string & {});

/** Counts by meter. An absent or undefined count is unknown and never 0. */
export type Counts = ReadonlyMap<Meter, number | undefined>;

/** One run of one model inside a call. */
export interface Pass {
  /** The upstream's name of the model; undefined: the requested model. */
  readonly model?: string | undefined;
  /** Service tier, speed and region as the answer says; undefined: the plain price applies. */
  readonly tier?: string | undefined;
  readonly speed?: string | undefined;
  readonly geo?: string | undefined;
  readonly counts: Counts;
}

/** The properties of an answer, beside its counts, that can change the price. */
export const VARIANTS = ['tier', 'speed', 'geo'] as const satisfies readonly (keyof Pass)[];

/** The usage of a call, as its upstream reported it. */
export interface Usage {
  /** The runs: one, unless the upstream reports more. Empty: nothing is known. */
  readonly passes: readonly Pass[];
  /** The paths of numbers in the report that no meter counts. They are never charged. */
  readonly unknown?: readonly string[];
}

/** The usage of a call about which nothing was reported. */
export const UNKNOWN_USAGE: Usage = { passes: [] };

/** Returns counts without the undefined ones. */
export function countsOf(counts: Readonly<Partial<Record<Meter, number | undefined>>>): Counts {
  const known = new Map<Meter, number>();
  for (const meter in counts) {
    const count = counts[meter];
    if (count !== undefined) known.set(meter, count);
  }
  return known;
}

/** Returns the usage of a call with one pass. */
export function usageOf(counts: Readonly<Partial<Record<Meter, number | undefined>>>): Usage {
  return { passes: [{ counts: countsOf(counts) }] };
}

/** Returns the tokens of some meters in all passes; undefined if none of them is known. */
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

/** Returns all input tokens of a call, cache reads and writes included. Unknown counts are 0 here. */
export function totalInputTokens(usage: Usage): number {
  return tokensOf(usage, INPUT_METERS) ?? 0;
}

/** Returns all output tokens; undefined if none were reported. */
export function outputTokens(usage: Usage): number | undefined {
  return tokensOf(usage, OUTPUT_METERS);
}

/** Returns the known counts of all passes, by meter. */
export function countsIn({ passes }: Usage): Readonly<Partial<Record<Meter, number>>> {
  const sums: Partial<Record<Meter, number>> = {};
  for (const { counts } of passes)
    for (const [meter, count] of counts) if (count !== undefined) sums[meter] = (sums[meter] ?? 0) + count;
  return sums;
}

/**
 * Merges two reports of one stream. New values replace old ones; values that the new report omits stay. Streams report input
 * first and output last.
 */
export function mergeUsage(before: Usage, now: Usage): Usage {
  if (now.passes.length === 0) return before;
  if (before.passes.length > now.passes.length) return before;
  const isSamePasses = before.passes.length === now.passes.length;
  const passes = now.passes.map((pass, at) => {
    const known = before.passes[at] ?? before.passes[0];
    return known === undefined ? pass : mergePass(known, pass, isSamePasses);
  });
  return now.unknown === undefined ? { passes } : { passes, unknown: now.unknown };
}

/** Merges two reports of one pass. A stream names the model and tier in its first event, but the number of passes only in its last one. */
function mergePass(before: Pass, now: Pass, isSame: boolean): Pass {
  const merged = { ...now, counts: isSame ? mergeCounts(before.counts, now.counts) : now.counts };
  for (const member of VARIANTS)
    if (now[member] === undefined && before[member] !== undefined) merged[member] = before[member];
  if (isSame && now.model === undefined && before.model !== undefined) merged.model = before.model;
  return merged;
}

/**
 * Merges the counts of two events. The first may count writes to the one-hour cache apart, while the last reports only the sum of
 * all cache writes. In that case, the one-hour writes are subtracted from the sum, because they must not count twice.
 */
function mergeCounts(before: Counts, now: Counts): Counts {
  const merged = new Map(before);
  for (const [meter, count] of now) if (count !== undefined) merged.set(meter, count);
  const written = now.get('cacheWrite');
  const hourBefore = before.get('cacheWrite1h');
  if (written !== undefined && hourBefore !== undefined && now.get('cacheWrite1h') === undefined)
    merged.set('cacheWrite', Math.max(written - hourBefore, 0));
  return merged;
}

/** Returns the passes with this output instead of their own, all in the first pass. The input stays as it is. */
export function withOutput({ passes }: Usage, output: number | undefined): Usage {
  const [first, ...others] = passes.map((pass) => {
    const counts = new Map(pass.counts);
    for (const meter of OUTPUT_METERS) counts.delete(meter);
    return { ...pass, counts };
  });
  const own = first ?? { counts: new Map<Meter, number>() };
  if (output !== undefined) own.counts.set('output', output);
  return { passes: [own, ...others] };
}
