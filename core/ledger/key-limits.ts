import { MAX_AMOUNT_E8 } from '../base/money';
import { assertAmount, smallest } from './amount';
import type { SpendingWindows } from './ledger';
import { type KeyLimits, limitsOf } from './limit-fields';

/*
 * The limits of a key in the reference model. `key-limits.lua` does the same for Redis and gives the reasons.
 */

const MINUTE_MICROS = 60_000_000;
const DAY_MS = 86_400_000;

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The counters for a key's limits, in addition to the totals of what it has spent and holds. */
export interface LimitCounters extends Mutable<SpendingWindows> {
  /**
   * When the per-minute bucket of calls is full again, in microseconds since 1970; 0 before the first call. `tokensAtMicros` and
   * `requestsAtMicros` are the times for tokens and for requests to the gateway's own API.
   */
  callsAtMicros: number;
  tokensAtMicros: number;
  requestsAtMicros: number;
}

type Limited = KeyLimits & LimitCounters & { readonly spentE8: bigint; readonly heldE8: bigint };

export function noCounts(): LimitCounters {
  return {
    day: 0,
    daySpentE8: 0n,
    month: 0,
    monthSpentE8: 0n,
    callsAtMicros: 0,
    tokensAtMicros: 0,
    requestsAtMicros: 0,
  };
}

/** @throws RangeError for an amount that the ledger cannot compute exactly */
export function assertLimits(limits: KeyLimits): void {
  for (const limit of Object.values(limitsOf(limits))) if (typeof limit === 'bigint') assertAmount(limit);
}

/** Returns the number of days since 1970, in UTC. */
export function dayNumberOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** Returns the number of months since the year 0, in UTC: year * 12 + month, where January is 1. */
export function monthNumberOf(ms: number): number {
  const date = new Date(ms);
  return date.getUTCFullYear() * 12 + date.getUTCMonth() + 1;
}

/** Returns how much money the limits leave; negative if a limit was lowered below what was already spent. */
export function remainingOf(key: Limited, nowMs: number): bigint {
  const { limitE8, dailyLimitE8, monthlyLimitE8, spentE8, heldE8 } = key;
  const { today, thisMonth } = spentIn(key, nowMs);
  return smallest(
    limitE8 === undefined ? MAX_AMOUNT_E8 : limitE8 - spentE8 - heldE8,
    dailyLimitE8 === undefined ? MAX_AMOUNT_E8 : dailyLimitE8 - today - heldE8,
    monthlyLimitE8 === undefined ? MAX_AMOUNT_E8 : monthlyLimitE8 - thisMonth - heldE8,
  );
}

/** Adds a charge to those spending windows that have a limit. */
export function countSpending(key: Limited, amountE8: bigint, nowMs: number): void {
  const { today, thisMonth } = spentIn(key, nowMs);
  if (key.dailyLimitE8 !== undefined) Object.assign(key, { day: dayNumberOf(nowMs), daySpentE8: today + amountE8 });
  if (key.monthlyLimitE8 !== undefined)
    Object.assign(key, { month: monthNumberOf(nowMs), monthSpentE8: thisMonth + amountE8 });
}

function spentIn(key: LimitCounters, nowMs: number): { today: bigint; thisMonth: bigint } {
  return {
    today: key.day === dayNumberOf(nowMs) ? key.daySpentE8 : 0n,
    thisMonth: key.month === monthNumberOf(nowMs) ? key.monthSpentE8 : 0n,
  };
}

/** Returns the new state of the API key's per-minute buckets after a call, and how many milliseconds too early for them the call is. */
export function takeRate(key: Limited, tokens: number, nowMs: number) {
  const now = nowMs * 1_000;
  const calls = take(key.callsPerMinute, key.callsAtMicros, 1, now);
  const used = take(key.tokensPerMinute, key.tokensAtMicros, tokens, now);
  return {
    callsAtMicros: calls.fullAt,
    tokensAtMicros: used.fullAt,
    waitMs: Math.ceil(Math.max(calls.late, used.late) / 1_000),
    callWaitMs: Math.ceil(calls.late / 1_000),
  };
}

/** Returns the new state of a key's bucket after a request to the gateway's own API, and how many milliseconds too early the request is. */
export function takeRequest({ requestsAtMicros }: LimitCounters, perMinute: number, nowMs: number) {
  const { fullAt, late } = take(perMinute, requestsAtMicros, 1, nowMs * 1_000);
  return { requestsAtMicros: fullAt, waitMs: Math.ceil(late / 1_000) };
}

function take(limit: number | undefined, fullAt: number, count: number, now: number) {
  if (limit === undefined) return { fullAt, late: 0 };
  const after = Math.max(now, fullAt) + Math.floor((Math.min(count, limit) * MINUTE_MICROS) / limit);
  return { fullAt: after, late: Math.max(0, after - now - MINUTE_MICROS) };
}

/** Gives tokens back to the API key's per-minute bucket: those that a call was expected to use and did not use. */
export function correctTokens(key: Limited, expected: number | undefined, used: number | undefined): void {
  const limit = key.tokensPerMinute;
  if (expected === undefined || used === undefined || limit === undefined || key.tokensAtMicros === 0) return;
  const less = Math.min(expected, limit) - Math.min(used, limit);
  key.tokensAtMicros -= Math.floor((less * MINUTE_MICROS) / limit);
}
