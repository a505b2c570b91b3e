import { isMainThread } from 'node:worker_threads';
import { collectDefaultMetrics, Registry } from 'prom-client';

/**
 * What this process counts and measures, in Prometheus' text format at `GET /metrics` of the admin listener. A metric is
 * made where its fact is known, with `registers: [metrics]`; names begin with `tollgate_`, units stand last. No label may
 * hold an id of a call, a key or an account: labels are bounded.
 */
export const metrics = new Registry();

/** `nodejs_eventloop_lag_…` wakes the process so often, also one with nothing to do. */
const LAG_EVERY_MS = 50;

// Nobody asks a thread for its own metrics.
if (isMainThread) collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: LAG_EVERY_MS });

let readAll = (): Promise<string> => metrics.metrics();

/** Returns the metrics of this process, or of all workers where it is one of them. */
export function showMetrics(): Promise<string> {
  return readAll();
}

/** Shows from now on what `read` returns. */
export function readMetricsFrom(read: () => Promise<string>): void {
  readAll = read;
}
