/*
 * The limits of an API key per minute in the reference model. `rates.lua` does the same for Redis and gives the reasons.
 */

const MINUTE_MICROS = 60_000_000;

/** The limits of an API key per minute, and when their buckets are full again. */
export interface RateBuckets {
  readonly callsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  /** When the bucket of calls is full again, in microseconds since 1970; 0 before the first call. */
  callsAtMicros: number;
  tokensAtMicros: number;
  /** When the bucket of requests to the gateway's own API is full again. */
  requestsAtMicros: number;
}

export const FULL_BUCKETS = { callsAtMicros: 0, tokensAtMicros: 0, requestsAtMicros: 0 };

/** Returns how a call changes the per-minute buckets, and how many milliseconds it comes too early. */
export function takeRate(key: RateBuckets, tokens: number, nowMs: number) {
  const now = nowMs * 1_000;
  const calls = take(key.callsPerMinute, believed(key.callsAtMicros, now), 1, now);
  const used = take(key.tokensPerMinute, key.tokensAtMicros, tokens, now);
  return {
    callsAtMicros: calls.fullAt,
    tokensAtMicros: used.fullAt,
    waitMs: Math.ceil(Math.max(calls.late, used.late) / 1_000),
    callWaitMs: Math.ceil(calls.late / 1_000),
  };
}

/** Returns how a request to the gateway's own API changes its bucket, and how many milliseconds it comes too early. */
export function takeRequest({ requestsAtMicros }: RateBuckets, perMinute: number, nowMs: number) {
  const now = nowMs * 1_000;
  const { fullAt, late } = take(perMinute, believed(requestsAtMicros, now), 1, now);
  return { requestsAtMicros: fullAt, waitMs: Math.ceil(late / 1_000) };
}

function take(limit: number | undefined, fullAt: number, count: number, now: number) {
  if (limit === undefined) return { fullAt, late: 0 };
  const after = Math.max(now, fullAt) + Math.floor((Math.min(count, limit) * MINUTE_MICROS) / limit);
  return { fullAt: after, late: Math.max(0, after - now - MINUTE_MICROS) };
}

/** Returns when a bucket is full again; 0 if the time says that the clock was set back. */
function believed(fullAt: number, now: number): number {
  return fullAt > now + MINUTE_MICROS ? 0 : fullAt;
}

/** Gives the tokens that a call was expected to use but did not use back to the bucket of its API key. */
export function correctTokens(key: RateBuckets, expected: number | undefined, used: number | undefined): void {
  const limit = key.tokensPerMinute;
  if (expected === undefined || used === undefined || limit === undefined || key.tokensAtMicros === 0) return;
  const less = Math.min(expected, limit) - Math.min(used, limit);
  key.tokensAtMicros -= Math.floor((less * MINUTE_MICROS) / limit);
}
