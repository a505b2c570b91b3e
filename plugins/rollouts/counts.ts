/** What was seen of one group in one stage. */
export interface GroupCounts {
  readonly calls: number;
  /** Not answered at the first attempt, or with an error. */
  readonly errors: number;
  /** The caller was shown an error. */
  readonly hurt: number;
  readonly costE8: bigint;
  /** Of the calls that cost something: how many, and sum and squares of the logarithms of their costs. */
  readonly charged: number;
  readonly logCost: number;
  readonly logCostSquares: number;
  /** Streams by the time to their first content. */
  readonly firstTokens: Times;
  /** Unstreamed calls by the time to their answer. */
  readonly wholeAnswers: Times;
  /** The same by slots of callers, of the control group alone. */
  readonly slots: ReadonlyMap<number, SlotCounts>;
}

/** What was seen of callers of one slot; times as sums of their logarithms. */
export interface SlotCounts {
  readonly calls: number;
  readonly errors: number;
  readonly charged: number;
  readonly logCost: number;
  readonly streams: number;
  readonly logFirstToken: number;
  readonly answers: number;
  readonly logWhole: number;
}

/** How many calls in which bucket. */
export type Times = ReadonlyMap<number, number>;

export const NOTHING_SEEN: GroupCounts = {
  calls: 0,
  errors: 0,
  hurt: 0,
  costE8: 0n,
  charged: 0,
  logCost: 0,
  logCostSquares: 0,
  firstTokens: new Map(),
  wholeAnswers: new Map(),
  slots: new Map(),
};

export function addCounts(one: GroupCounts, other: GroupCounts): GroupCounts {
  return {
    calls: one.calls + other.calls,
    errors: one.errors + other.errors,
    hurt: one.hurt + other.hurt,
    costE8: one.costE8 + other.costE8,
    charged: one.charged + other.charged,
    logCost: one.logCost + other.logCost,
    logCostSquares: one.logCostSquares + other.logCostSquares,
    firstTokens: addTimes(one.firstTokens, other.firstTokens),
    wholeAnswers: addTimes(one.wholeAnswers, other.wholeAnswers),
    slots: addSlots(one.slots, other.slots),
  };
}

function addSlots(one: GroupCounts['slots'], other: GroupCounts['slots']): GroupCounts['slots'] {
  if (one.size === 0) return other;
  const sum = new Map(one);
  for (const [slot, counts] of other) {
    const known = sum.get(slot);
    sum.set(slot, known === undefined ? counts : addSlot(known, counts));
  }
  return sum;
}

function addSlot(one: SlotCounts, other: SlotCounts): SlotCounts {
  const names = Object.keys(one) as (keyof SlotCounts)[];
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as unknown as SlotCounts;
}

function addTimes(one: Times, other: Times): Times {
  if (one.size === 0) return other;
  const sum = new Map(one);
  for (const [bucket, count] of other) sum.set(bucket, (sum.get(bucket) ?? 0) + count);
  return sum;
}

/** Each bucket of times reaches 5 % further than the one before. */
const BUCKET_LOG = Math.log(1.05);

export function bucketOf(ms: number): number {
  return Math.max(0, Math.ceil(Math.log(Math.max(ms, 1)) / BUCKET_LOG));
}

/** The longest time of a bucket. */
export function upToMs(bucket: number): number {
  return Math.exp(bucket * BUCKET_LOG);
}

/** How many buckets further a time is that is so many times as long; rounded up. */
export function bucketsFurther(times: number): number {
  return Math.ceil(Math.log(times) / BUCKET_LOG - 1e-9);
}

export function countOf(times: Times): number {
  return countBeyond(times, -1);
}

export function countBeyond(times: Times, bucket: number): number {
  let count = 0;
  for (const [each, calls] of times) if (each > bucket) count += calls;
  return count;
}

/** The first bucket that no more than this share of the calls are beyond; undefined without any. */
export function bucketOfShare(times: Times, share: number): number | undefined {
  const atMost = countOf(times) * share;
  let beyond = 0;
  let found: number | undefined;
  for (const bucket of [...times.keys()].sort((one, other) => other - one)) {
    if (beyond > atMost) break;
    found = bucket;
    beyond += times.get(bucket) ?? 0;
  }
  return found;
}
