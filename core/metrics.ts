import { isMainThread } from 'node:worker_threads';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { type MetricsFormat, writeMetrics } from './summed-metrics';

/**
 * What this process counts and measures, as text at `GET /metrics` of the admin listener. A metric is made where its fact is known,
 * with `registers: [metrics]`; names begin with `tollgate_`, units are base units and stand last. Labels are bounded: none may hold
 * an id of a call or a key, nor what a client has made up.
 */
export const metrics = new Registry();

/** `nodejs_eventloop_lag_…` wakes the process so often, also one with nothing to do. */
const LAG_EVERY_MS = 50;

// Nobody asks a thread for its own metrics.
if (isMainThread) collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: LAG_EVERY_MS });

let readAll = async (format: MetricsFormat): Promise<string> =>
  writeMetrics([await metrics.getMetricsAsJSON()], format);

/** Returns the metrics of this process, or of all workers where it is one of them. */
export function showMetrics(format: MetricsFormat): Promise<string> {
  return readAll(format);
}

/** Shows from now on what `read` returns. */
export function readMetricsFrom(read: typeof readAll): void {
  readAll = read;
}
