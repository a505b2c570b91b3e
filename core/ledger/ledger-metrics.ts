import { Counter } from 'prom-client';
import type { MaybeLater } from '../later';
import { metrics } from '../metrics';
import { Buckets, QuickHistogram } from '../quick-histogram';
import type { Calls, ReserveOutcome, ReserveRequest, SettleOutcome, SettleRequest } from './ledger';

const registers = [metrics];

/**
 * The buckets of both histograms. They reach the time after which a call is refused, and twice that time for settles, because no
 * call waits longer for one.
 */
const ANSWER_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];

const reserves = new Buckets(ANSWER_SECONDS);
const settles = new Buckets(ANSWER_SECONDS);
new QuickHistogram({ name: 'tollgate_ledger_reserve_seconds', help: 'Time of the ledger to answer a reserve.' }, () => [
  { labels: {}, buckets: reserves },
]);
new QuickHistogram(
  { name: 'tollgate_ledger_settle_seconds', help: 'Time of the ledger to answer a settle, for each try.' },
  () => [{ labels: {}, buckets: settles }],
);
const refusals = new Counter({
  name: 'tollgate_ledger_refusals_total',
  help: 'Reserves that the ledger refused, by answer; `unavailable` if it did not answer.',
  labelNames: ['reason'],
  registers,
});
const expired = new Counter({
  name: 'tollgate_ledger_expired_total',
  help: 'Holds released because their lease expired before the call settled.',
  registers,
});
const late = new Counter({
  name: 'tollgate_ledger_late_settles_total',
  help: 'Settles after the end of the lease, which charged nothing.',
  registers,
});
const shortfalls = new Counter({
  name: 'tollgate_ledger_shortfalls_total',
  help: 'Settles whose cost exceeded the hold, the balance or a limit.',
  registers,
});
const shortfallUsd = new Counter({
  name: 'tollgate_ledger_shortfall_usd_total',
  help: 'Amount in USD that could not be charged.',
  registers,
});

/** Notes how long an answer or a failure took that began at `startedMs`. */
function observe(buckets: Buckets, startedMs: number): void {
  buckets.observe((performance.now() - startedMs) / 1_000);
}

/**
 * Reserves, and counts refusals.
 * @throws what the ledger throws
 */
export function measuredReserve(calls: Pick<Calls, 'reserve'>, request: ReserveRequest): MaybeLater<ReserveOutcome> {
  const startedMs = performance.now();
  try {
    const outcome = calls.reserve(request);
    return outcome instanceof Promise
      ? outcome.then(
          (answer) => countReserve(answer, startedMs),
          (error: unknown) => unreserved(error, startedMs),
        )
      : countReserve(outcome, startedMs);
  } catch (error) {
    return unreserved(error, startedMs);
  }
}

function countReserve(answer: ReserveOutcome, startedMs: number): ReserveOutcome {
  observe(reserves, startedMs);
  if (answer.outcome !== 'reserved') refusals.inc({ reason: answer.outcome });
  return answer;
}

function unreserved(error: unknown, startedMs: number): never {
  observe(reserves, startedMs);
  refusals.inc({ reason: 'unavailable' });
  throw error;
}

/**
 * Settles, and counts what could not be charged.
 * @throws what the ledger throws
 */
export function measuredSettle(calls: Pick<Calls, 'settle'>, request: SettleRequest): MaybeLater<SettleOutcome> {
  const startedMs = performance.now();
  try {
    const outcome = calls.settle(request);
    return outcome instanceof Promise
      ? outcome.then(
          (answer) => countSettle(answer, startedMs),
          (error: unknown) => unsettled(error, startedMs),
        )
      : countSettle(outcome, startedMs);
  } catch (error) {
    return unsettled(error, startedMs);
  }
}

function countSettle(answer: SettleOutcome, startedMs: number): SettleOutcome {
  observe(settles, startedMs);
  if (answer.outcome === 'expired') late.inc();
  if (answer.outcome === 'settled' && answer.shortfallE8 > 0n) {
    shortfalls.inc();
    shortfallUsd.inc(Number(answer.shortfallE8) / 1e8);
  }
  return answer;
}

function unsettled(error: unknown, startedMs: number): never {
  observe(settles, startedMs);
  throw error;
}

export function countExpired(holds: number): void {
  expired.inc(holds);
}
