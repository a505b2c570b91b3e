import { isMainThread } from 'node:worker_threads';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { type MetricsFormat, writeMetrics } from './aggregate-metrics';

/**
 * The metrics of this process, as text at `GET /metrics` of the admin listener. Code creates a metric beside the fact that it
 * counts, with `registers: [metrics]`. Names begin with `tollgate_` and end with their base unit. Labels have few values: never
 * an id of a call or a key, and no text that a client made up.
 */
export const metrics = new Registry();

// Only the main thread collects default metrics, because no scraper asks another thread.
if (isMainThread) {
  // Its histogram of the lag would wake an idle process. `tollgate_event_loop_lag_seconds` replaces it (core/base/watchdog.ts).
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: 2 ** 31 - 1 });
  for (const { name } of metrics.getMetricsAsArray())
    if (name.startsWith('nodejs_eventloop_lag')) metrics.removeSingleMetric(name);
}

let readAll = async (format: MetricsFormat): Promise<string> =>
  writeMetrics([await metrics.getMetricsAsJSON()], format);

/** Returns the metrics of this process, or of all workers if it is one of them. */
export function showMetrics(format: MetricsFormat): Promise<string> {
  return readAll(format);
}

/** Makes `showMetrics` return what `read` returns from now on. */
export function readMetricsFrom(read: typeof readAll): void {
  readAll = read;
}
