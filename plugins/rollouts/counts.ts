/** The counts of one group in one stage. */
export interface GroupCounts {
  readonly calls: number;
  /** Calls whose first attempt failed, or that ended with an error. */
  readonly errors: number;
  /** Calls whose caller received an error. */
  readonly hurt: number;
  readonly costE8: bigint;
  /** The calls with a cost: their number, and the sum and the sum of squares of the logarithms of their costs. */
  readonly charged: number;
  readonly logCost: number;
  readonly logCostSquares: number;
  /** Streams by the time to their first content. */
  readonly firstTokens: Times;
  /** Unstreamed calls by the time to their answer. */
  readonly wholeAnswers: Times;
  /** The counts by slot of callers; only for the control group. */
  readonly slots: ReadonlyMap<number, SlotCounts>;
}

/** The counts of the callers of one slot; times are sums of logarithms. */
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

/** The number of calls by bucket of time. */
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

/** The width of a bucket, as a logarithm: each bucket reaches 5 % further than the one before. */
const BUCKET_LOG = Math.log(1.05);

export function bucketOf(ms: number): number {
  return Math.max(0, Math.ceil(Math.log(Math.max(ms, 1)) / BUCKET_LOG));
}

/** Returns the longest time of a bucket. */
export function upToMs(bucket: number): number {
  return Math.exp(bucket * BUCKET_LOG);
}

/** Returns how many buckets a time moves when it is multiplied by `times`; rounded up. */
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

/** Returns the first bucket beyond which lies at most this share of the calls; undefined if there are no calls. */
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
