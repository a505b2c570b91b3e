/** What was seen of one group in one stage. */
export interface ArmCounts {
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
  /** Streams by the time to their first content: how many in which bucket. */
  readonly firstTokens: ReadonlyMap<number, number>;
}

export const NOTHING_SEEN: ArmCounts = {
  calls: 0,
  errors: 0,
  hurt: 0,
  costE8: 0n,
  charged: 0,
  logCost: 0,
  logCostSquares: 0,
  firstTokens: new Map(),
};

export function addCounts(one: ArmCounts, other: ArmCounts): ArmCounts {
  const firstTokens = new Map(one.firstTokens);
  for (const [bucket, count] of other.firstTokens) firstTokens.set(bucket, (firstTokens.get(bucket) ?? 0) + count);
  return {
    calls: one.calls + other.calls,
    errors: one.errors + other.errors,
    hurt: one.hurt + other.hurt,
    costE8: one.costE8 + other.costE8,
    charged: one.charged + other.charged,
    logCost: one.logCost + other.logCost,
    logCostSquares: one.logCostSquares + other.logCostSquares,
    firstTokens,
  };
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

export function streamsOf({ firstTokens }: Pick<ArmCounts, 'firstTokens'>): number {
  return streamsBeyond(firstTokens, -1);
}

export function streamsBeyond(firstTokens: ArmCounts['firstTokens'], bucket: number): number {
  let count = 0;
  for (const [each, streams] of firstTokens) if (each > bucket) count += streams;
  return count;
}

/** The first bucket that no more than this share of the streams are beyond; undefined without streams. */
export function bucketOfShare({ firstTokens }: Pick<ArmCounts, 'firstTokens'>, share: number): number | undefined {
  const atMost = streamsOf({ firstTokens }) * share;
  let beyond = 0;
  let found: number | undefined;
  for (const bucket of [...firstTokens.keys()].sort((one, other) => other - one)) {
    if (beyond > atMost) break;
    found = bucket;
    beyond += firstTokens.get(bucket) ?? 0;
  }
  return found;
}
