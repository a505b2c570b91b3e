/** Token counts as an upstream reported them. `undefined` is unknown and never 0. */
export interface Usage {
  /** Input tokens without those read from or written to a cache. */
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly cacheReadTokens: number | undefined;
  /** Tokens written to the short-lived cache (five minutes); to all caches when `cacheWrite1hTokens` is not reported. */
  readonly cacheWriteTokens: number | undefined;
  /** Tokens written to the one-hour cache, where the upstream tells them apart. */
  readonly cacheWrite1hTokens: number | undefined;
}

export const UNKNOWN_USAGE: Usage = {
  inputTokens: undefined,
  outputTokens: undefined,
  cacheReadTokens: undefined,
  cacheWriteTokens: undefined,
  cacheWrite1hTokens: undefined,
};

/** The counts of two parts together; unknown only where both are. */
export function addUsage(one: Usage, other: Usage): Usage {
  return {
    inputTokens: add(one.inputTokens, other.inputTokens),
    outputTokens: add(one.outputTokens, other.outputTokens),
    cacheReadTokens: add(one.cacheReadTokens, other.cacheReadTokens),
    cacheWriteTokens: add(one.cacheWriteTokens, other.cacheWriteTokens),
    cacheWrite1hTokens: add(one.cacheWrite1hTokens, other.cacheWrite1hTokens),
  };
}

function add(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : one + (other ?? 0);
}

/** What is newly reported wins; what is not reported stays. Streams report input first and output last. */
export function mergeUsage(before: Usage, now: Usage): Usage {
  return {
    inputTokens: now.inputTokens ?? before.inputTokens,
    outputTokens: now.outputTokens ?? before.outputTokens,
    cacheReadTokens: now.cacheReadTokens ?? before.cacheReadTokens,
    cacheWriteTokens: mergeCacheWrite(before, now),
    cacheWrite1hTokens: now.cacheWrite1hTokens ?? before.cacheWrite1hTokens,
  };
}

/**
 * A stream may tell the caches apart in its first event and repeat only their sum in its last one; what was written to
 * the one-hour cache must not be counted a second time.
 */
function mergeCacheWrite(before: Usage, now: Usage): number | undefined {
  if (now.cacheWriteTokens === undefined) return before.cacheWriteTokens;
  if (now.cacheWrite1hTokens !== undefined || before.cacheWrite1hTokens === undefined) return now.cacheWriteTokens;
  return Math.max(now.cacheWriteTokens - before.cacheWrite1hTokens, 0);
}
