import { AggregatorRegistry, type MetricObjectWithValues, type MetricValueWithName, Registry } from 'prom-client';

/** One sampled call in a bucket of a histogram, named by its trace id. `timestamp` is in seconds since 1970. */
export interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>;
  readonly value: number;
  readonly timestamp: number;
}

export type Sample = MetricValueWithName<string> & { readonly exemplar?: Exemplar | undefined };

type Family = MetricObjectWithValues<Sample>;

/** The metrics of one process, in the form in which processes send them to each other. */
export type MetricsAsJson = readonly Family[];

/** The text format of the metrics: Prometheus or OpenMetrics. Only OpenMetrics has exemplars. */
export type MetricsFormat = typeof Registry.PROMETHEUS_CONTENT_TYPE | typeof Registry.OPENMETRICS_CONTENT_TYPE;

/** Merges the metrics of several processes. Each metric's `aggregator` says how its values merge, such as by their sum. */
export function aggregateMetrics(ofProcesses: readonly MetricsAsJson[]): Promise<MetricsAsJson> {
  return aggregated(ofProcesses, Registry.PROMETHEUS_CONTENT_TYPE).getMetricsAsJSON();
}

/** Writes the metrics of one or several processes as text. */
export async function writeMetrics(ofProcesses: readonly MetricsAsJson[], format: MetricsFormat): Promise<string> {
  if (format === Registry.PROMETHEUS_CONTENT_TYPE) return aggregated(ofProcesses, format).metrics();
  const open = ofProcesses.map((families) => families.map(asOpenMetrics));
  const registry = aggregated(open, format);
  putExemplars(await registry.getMetricsAsJSON(), open);
  return registry.metrics();
}

function aggregated(ofProcesses: readonly MetricsAsJson[], format: MetricsFormat): Registry<MetricsFormat> {
  const sum = AggregatorRegistry.aggregate<MetricsFormat>(ofProcesses.map((families) => [...families]));
  sum.setContentType(format);
  return sum;
}

/** Adapts a metric family to OpenMetrics: removes `_total` from a counter's name, but not from its samples, and writes bucket bounds as floats. */
function asOpenMetrics(family: Family): Family {
  const name = isOf(family, 'counter') ? family.name.replace(/_total$/, '') : family.name;
  if (!isOf(family, 'histogram')) return { ...family, name };
  const values = family.values.map((sample) => {
    const { le } = sample.labels;
    return Number.isInteger(le) ? { ...sample, labels: { ...sample.labels, le: `${le}.0` } } : sample;
  });
  return { ...family, name, values };
}

/** Restores the newest exemplar of each sample, because the library prom-client drops exemplars when it sums metrics. */
function putExemplars(
  sum: readonly MetricObjectWithValues<MetricValueWithName<string>>[],
  of: readonly MetricsAsJson[],
) {
  const exemplars = new Map<string, Exemplar>();
  for (const { values } of of.flat())
    for (const sample of values) {
      const { exemplar } = sample;
      const before = exemplar && exemplars.get(nameOf(sample));
      if (exemplar && (before === undefined || before.timestamp < exemplar.timestamp))
        exemplars.set(nameOf(sample), exemplar);
    }
  for (const { values } of exemplars.size === 0 ? [] : sum)
    for (const sample of values) Object.assign(sample, { exemplar: exemplars.get(nameOf(sample)) });
}

function nameOf({ metricName = '', labels }: Sample): string {
  return `${metricName} ${JSON.stringify(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)))}`;
}

/** Returns the counters and histograms of a process that has ended. Their values remain valid, unlike those of other metrics. */
export function countersOf(metrics: MetricsAsJson): MetricsAsJson {
  return metrics.filter((family) => isOf(family, 'counter') || isOf(family, 'histogram'));
}

function isOf({ type }: Family, wanted: 'counter' | 'histogram'): boolean {
  return `${type}` === wanted;
}
