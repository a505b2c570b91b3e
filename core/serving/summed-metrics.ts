import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

/** The metrics of one process, as they travel between processes. */
export type MetricsAsJson = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Makes one of the metrics of several processes: each metric says by its `aggregator` how. */
export function aggregate(ofProcesses: readonly MetricsAsJson[]): Registry {
  return AggregatorRegistry.aggregate(ofProcesses.map((each) => [...each]));
}

/** Returns what stays true of a process that has ended. */
export function countersOf(metrics: MetricsAsJson): MetricsAsJson {
  return metrics.filter(({ type }) => `${type}` === 'counter' || `${type}` === 'histogram');
}
