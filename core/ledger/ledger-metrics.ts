import { Counter, Histogram } from 'prom-client';
import { metrics } from '../metrics';
import type { Calls, ReserveOutcome, ReserveRequest, SettleOutcome, SettleRequest } from './ledger';

const registers = [metrics];

/**
 * The buckets of both histograms. They reach the time after which a call is refused, and twice that time for settles, because no
 * call waits longer for one.
 */
const buckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5];

const reserves = new Histogram({
  name: 'tollgate_ledger_reserve_seconds',
  help: 'Time of the ledger to answer a reserve.',
  buckets,
  registers,
});
const settles = new Histogram({
  name: 'tollgate_ledger_settle_seconds',
  help: 'Time of the ledger to answer a settle, for each try.',
  buckets,
  registers,
});
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

/** Asks the ledger, and measures how long its answer takes. */
async function measured<T>(histogram: Histogram, ask: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  try {
    return await ask();
  } finally {
    histogram.observe((performance.now() - startedMs) / 1_000);
  }
}

/**
 * Reserves, and counts refusals.
 * @throws what the ledger throws
 */
export async function measuredReserve(calls: Pick<Calls, 'reserve'>, request: ReserveRequest): Promise<ReserveOutcome> {
  try {
    const answer = await measured(reserves, () => calls.reserve(request));
    if (answer.outcome !== 'reserved') refusals.inc({ reason: answer.outcome });
    return answer;
  } catch (error) {
    refusals.inc({ reason: 'unavailable' });
    throw error;
  }
}

/**
 * Settles, and counts what could not be charged.
 * @throws what the ledger throws
 */
export async function measuredSettle(calls: Pick<Calls, 'settle'>, request: SettleRequest): Promise<SettleOutcome> {
  const answer = await measured(settles, () => calls.settle(request));
  if (answer.outcome === 'expired') late.inc();
  if (answer.outcome === 'settled' && answer.shortfallE8 > 0n) {
    shortfalls.inc();
    shortfallUsd.inc(Number(answer.shortfallE8) / 1e8);
  }
  return answer;
}

export function countExpired(holds: number): void {
  expired.inc(holds);
}
