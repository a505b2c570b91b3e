import type { SeenCall } from '../../core/rollouts/live-rollouts';

/** What is counted of a group's calls. Each call with a time or a cost is counted in a bucket of it. */
export type What = 'calls' | 'errors' | 'hurt' | 'costE8' | Measure;

/** `firstToken`: streams by the time to their first content. `whole`: unstreamed calls by the time to their answer. `cost`: charged calls. */
export type Measure = 'firstToken' | 'whole' | 'cost';

/** The counts of a group in a stage. Its keys are those of `keyOf`. */
export type Counts = ReadonlyMap<string, number>;

export const NOTHING_SEEN: Counts = new Map();

export function keyOf(what: What, bucket = 0): string {
  return `${what} ${bucket}`;
}

export function countOf(counts: Counts, what: Exclude<What, Measure>): number {
  return counts.get(keyOf(what)) ?? 0;
}

export function addCounts(one: Counts, other: Counts): Counts {
  const sum = new Map(one);
  for (const [key, count] of other) add(sum, key, count);
  return sum;
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

/** Counts a call. One that is not compared only tells whether its client received an error. */
export function countCall(counts: Map<string, number>, seen: SeenCall, isCompared: boolean): void {
  if (seen.isHurt) add(counts, keyOf('hurt'), 1);
  if (!isCompared) return;
  const { isError, costE8, firstTokenMs, wholeMs } = seen;
  add(counts, keyOf('calls'), 1);
  if (isError) add(counts, keyOf('errors'), 1);
  if (costE8 > 0n) {
    add(counts, keyOf('costE8'), Number(costE8));
    add(counts, keyOf('cost', bucketOf(Number(costE8))), 1);
  }
  if (firstTokenMs !== undefined) add(counts, keyOf('firstToken', bucketOf(firstTokenMs)), 1);
  if (wholeMs !== undefined) add(counts, keyOf('whole', bucketOf(wholeMs)), 1);
}

/** The width of a bucket, as a logarithm: each bucket reaches 2 % further than the one before. */
const BUCKET_LOG = Math.log(1.02);

export function bucketOf(value: number): number {
  return Math.max(0, Math.ceil(Math.log(Math.max(value, 1)) / BUCKET_LOG));
}

/** Returns the highest value of a bucket. */
export function upTo(bucket: number): number {
  return Math.exp(bucket * BUCKET_LOG);
}

/** Returns how many buckets a value moves when it is multiplied by `times`; rounded up. */
export function bucketsFurther(times: number): number {
  return Math.ceil(Math.log(times) / BUCKET_LOG - 1e-9);
}

/** Returns the calls with this measure: all, or those beyond a bucket. */
export function measured(counts: Counts, measure: Measure, beyond = -1): number {
  return bucketsOf(counts, measure).reduce((sum, [bucket, calls]) => (bucket > beyond ? sum + calls : sum), 0);
}

/** Returns the first bucket beyond which lies at most this share of the calls; undefined if there are no calls. */
export function bucketOfShare(counts: Counts, measure: Measure, share: number): number | undefined {
  const buckets = bucketsOf(counts, measure).sort(([one], [other]) => other - one);
  const atMost = measured(counts, measure) * share;
  let beyond = 0;
  let found: number | undefined;
  for (const [bucket, calls] of buckets) {
    if (beyond > atMost) break;
    found = bucket;
    beyond += calls;
  }
  return found;
}

function bucketsOf(counts: Counts, measure: Measure): [bucket: number, calls: number][] {
  return [...counts].flatMap(([key, calls]): [number, number][] =>
    key.startsWith(`${measure} `) ? [[Number(key.slice(measure.length + 1)), calls]] : [],
  );
}
