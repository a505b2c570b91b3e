import { Counter } from 'prom-client';
import type { MaybeLater } from '../base/maybe-later';
import { metrics } from '../base/metrics';
import { Buckets, QuickHistogram } from '../base/quick-histogram';
import type { Calls, ReserveOutcome, ReserveRequest, SettleOutcome, SettleRequest } from './ledger';

const registers = [metrics];

/**
 * The buckets of the histograms of reserves and settles, in seconds. The largest is twice the timeout of a reserve, because no call waits
 * longer for a settle.
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

/**
 * Calls the ledger, and measures the time until it answers or fails. Passes an answer to `note`, and calls `noteFailure` after a failure.
 * @throws the errors of the ledger
 */
function measured<T>(
  buckets: Buckets,
  ask: () => MaybeLater<T>,
  note: (answer: T) => void,
  noteFailure: () => void = () => undefined,
): MaybeLater<T> {
  const startedMs = performance.now();
  const answered = (answer: T): T => {
    buckets.observe((performance.now() - startedMs) / 1_000);
    note(answer);
    return answer;
  };
  const failed = (error: unknown): never => {
    buckets.observe((performance.now() - startedMs) / 1_000);
    noteFailure();
    throw error;
  };
  let answer: MaybeLater<T>;
  try {
    answer = ask();
  } catch (error) {
    return failed(error);
  }
  return answer instanceof Promise ? answer.then(answered, failed) : answered(answer);
}

/** Reserves, and counts refusals in the metrics. @throws the errors of the ledger */
export function measuredReserve(calls: Pick<Calls, 'reserve'>, request: ReserveRequest): MaybeLater<ReserveOutcome> {
  return measured(reserves, () => calls.reserve(request), countRefused, countUnavailable);
}

function countRefused({ outcome }: ReserveOutcome): void {
  if (outcome !== 'reserved') refusals.inc({ reason: outcome });
}

function countUnavailable(): void {
  refusals.inc({ reason: 'unavailable' });
}

/** Settles, and counts shortfalls in the metrics. @throws the errors of the ledger */
export function measuredSettle(calls: Pick<Calls, 'settle'>, request: SettleRequest): MaybeLater<SettleOutcome> {
  return measured(settles, () => calls.settle(request), countUncharged);
}

function countUncharged(answer: SettleOutcome): void {
  if (answer.outcome === 'expired') late.inc();
  if (answer.outcome !== 'settled' || answer.shortfallE8 === 0n) return;
  shortfalls.inc();
  shortfallUsd.inc(Number(answer.shortfallE8) / 1e8);
}

export function countExpired(holds: number): void {
  expired.inc(holds);
}
