import { formatUsd } from '../../core/base/money';
import type { SeenCall } from '../../core/rollouts/live-rollouts';
import { percent } from '../../core/rollouts/plan';
import type { Guard } from '../../core/rollouts/rollout';

/** What a node counts of the calls of a rollout group. A call with a time or a cost is counted in the bucket (range of values) of that value. */
export type What = 'calls' | 'errors' | 'hurt' | 'costE8' | Measure;

/** `firstToken`: streams, by their time to the first content. `whole`: unstreamed calls, by the time to the answer. `cost`: charged calls, by their cost. */
export type Measure = 'firstToken' | 'whole' | 'cost';

/** The counts of one rollout group in one stage. `countKeyOf` makes the keys. */
export type GuardCounts = ReadonlyMap<string, number>;

export const NOTHING_SEEN: GuardCounts = new Map();

export function countKeyOf(what: What, bucket = 0): string {
  return `${what} ${bucket}`;
}

export function countOf(counts: GuardCounts, what: Exclude<What, Measure>): number {
  return counts.get(countKeyOf(what)) ?? 0;
}

export function addCounts(one: GuardCounts, other: GuardCounts): GuardCounts {
  const sum = new Map(one);
  for (const [key, count] of other) add(sum, key, count);
  return sum;
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

/** Counts a call for the guards. For a call that the guards do not compare, counts only whether its client received an error. */
export function countForGuards(counts: Map<string, number>, seen: SeenCall, isCompared: boolean): void {
  if (seen.isHurt) add(counts, countKeyOf('hurt'), 1);
  if (!isCompared) return;
  const { isError, costE8, firstTokenMs, wholeMs } = seen;
  add(counts, countKeyOf('calls'), 1);
  if (isError) add(counts, countKeyOf('errors'), 1);
  if (costE8 > 0n) {
    add(counts, countKeyOf('costE8'), Number(costE8));
    add(counts, countKeyOf('cost', bucketOf(Number(costE8))), 1);
  }
  if (firstTokenMs !== undefined) add(counts, countKeyOf('firstToken', bucketOf(firstTokenMs)), 1);
  if (wholeMs !== undefined) add(counts, countKeyOf('whole', bucketOf(wholeMs)), 1);
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

/** Returns by how many buckets a value rises when it is multiplied by `times`, rounded up. */
function bucketsFurther(times: number): number {
  return Math.ceil(Math.log(times) / BUCKET_LOG - 1e-9);
}

/** Returns the number of calls that have this measure: all of them, or only those in the buckets above bucket `beyond`. */
export function measured(counts: GuardCounts, measure: Measure, beyond = -1): number {
  return bucketsOf(counts, measure).reduce((sum, [bucket, calls]) => (bucket > beyond ? sum + calls : sum), 0);
}

/** Returns the lowest bucket above which at most this share of the calls lies; undefined if there are no calls. */
export function bucketOfShare(counts: GuardCounts, measure: Measure, share: number): number | undefined {
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

function bucketsOf(counts: GuardCounts, measure: Measure): [bucket: number, calls: number][] {
  return [...counts].flatMap(([key, calls]): [number, number][] =>
    key.startsWith(`${measure} `) ? [[Number(key.slice(measure.length + 1)), calls]] : [],
  );
}

/** The number of a group's calls that a guard compares, and how many of them are beyond its threshold. */
interface Share {
  readonly of: number;
  readonly beyond: number;
}

/** A threshold of a guard, with the counts of both groups. */
export interface GuardLine {
  readonly treatment: Share;
  readonly control: Share;
  /** What it means for a call to be beyond the threshold, in words for operators, such as `calls failed`. */
  readonly did: string;
}

/** Returns a guard's thresholds. A guard of times has one for streams and one for whole answers, because a whole answer's time depends on its length. */
export function linesOf({ name, times }: Guard, treatment: GuardCounts, control: GuardCounts): readonly GuardLine[] {
  switch (name) {
    case 'errorRate': {
      const failed = (group: GuardCounts) => ({ of: countOf(group, 'calls'), beyond: countOf(group, 'errors') });
      return [{ treatment: failed(treatment), control: failed(control), did: 'calls failed' }];
    }
    case 'p95FirstTokenMs':
      return [
        line('firstToken', 0.05, (ms) => `streams took longer than ${ms.toFixed()} ms to their first content`),
        line('whole', 0.05, (ms) => `unstreamed calls took longer than ${ms.toFixed()} ms to their answer`),
      ];
    case 'costRatio':
      return [line('cost', 0.5, (costE8) => `calls cost more than ${formatUsd(BigInt(Math.round(costE8)))} USD`)];
  }

  /** Returns a threshold: `times` multiplied by the value that this share of the control group's calls exceeds. */
  function line(measure: Measure, share: number, did: (value: number) => string): GuardLine {
    const bucket = (bucketOfShare(control, measure, share) ?? 0) + bucketsFurther(times);
    const beyond = (group: GuardCounts) => ({ of: measured(group, measure), beyond: measured(group, measure, bucket) });
    return { treatment: beyond(treatment), control: beyond(control), did: did(upTo(bucket)) };
  }
}

/**
 * Tells whether the treatment's share of calls beyond the threshold is higher than the control's by more than `above`. It compares the
 * lower end of the treatment's 95 % interval with the upper end of the control's.
 */
export function isWorse({ treatment, control }: GuardLine, { above }: Guard): boolean {
  return intervalOf(treatment).least > intervalOf(control).most + above;
}

/** Returns the 95 % Wilson interval of the share `beyond / of`: the range in which the true share probably lies. */
export function intervalOf({ of, beyond }: Share): { readonly least: number; readonly most: number } {
  const z = 1.96;
  const share = beyond / of;
  const middle = share + z ** 2 / (2 * of);
  const half = z * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2));
  const scale = 1 + z ** 2 / of;
  return { least: (middle - half) / scale, most: (middle + half) / scale };
}

export function describeLine({ treatment, control, did }: GuardLine): string {
  const [least, most] = [intervalOf(treatment).least, intervalOf(control).most].map(rounded);
  return `${treatment.beyond} of ${treatment.of} ${did} (at least ${least}), of the control group ${control.beyond} of ${control.of} (at most ${most})`;
}

function rounded(share = 0): string {
  return percent(Number(share.toPrecision(3)));
}
