import { isMainThread } from 'node:worker_threads';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { type MetricsFormat, writeMetrics } from './aggregate-metrics';

/**
 * The metrics of this process, which the admin listener serves as text at `GET /metrics`. Code creates a metric beside the fact that it
 * counts, with `registers: [metrics]`. Names begin with `tollgate_` and end with their base unit. Labels have few values: never an id of a
 * call or a key, and no text that a client made up.
 */
export const metrics = new Registry();

// Only the main thread collects default metrics, because Prometheus scrapes no other thread.
if (isMainThread) {
  // Disables the event-loop-lag histogram of the library prom-client, because that histogram would wake an idle process.
  // `tollgate_event_loop_lag_seconds` replaces it (core/base/watchdog.ts).
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: 2 ** 31 - 1 });
  for (const { name } of metrics.getMetricsAsArray())
    if (name.startsWith('nodejs_eventloop_lag')) metrics.removeSingleMetric(name);
}

let readAll = async (format: MetricsFormat): Promise<string> =>
  writeMetrics([await metrics.getMetricsAsJSON()], format);

/** Returns the metrics as text: those of this process, or of all workers if this process is a worker. */
export function showMetrics(format: MetricsFormat): Promise<string> {
  return readAll(format);
}

/** Replaces the function from which `showMetrics` gets the metrics. */
export function readMetricsFrom(read: typeof readAll): void {
  readAll = read;
}
