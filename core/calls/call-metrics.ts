import { Counter } from 'prom-client';
import { getOrInsert } from '../base/collections';
import { metrics } from '../base/metrics';
import { Buckets, QuickHistogram, type Series } from '../base/quick-histogram';
import { TOKEN_METERS, type TokenMeter, type Usage } from '../catalog/usage';
import type { Call } from './call';

/** The bucket bounds of a call's duration in seconds, from a quick refusal to the longest answers. */
const DURATION_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const FIRST_TOKEN_SECONDS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60];
/** The bucket bounds of the time that the gateway adds, in seconds. It is about 1 ms unless a call waits for the ledger, a slot or another attempt. */
const ADDED_SECONDS = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** The labels of status classes. The index is the first digit of the HTTP status. */
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'];
const NONE = 'none';

/** The metrics of the calls of one path and routing strategy. There are few such pairs, because both come from the configuration. */
class RouteMetrics {
  readonly durations = new Buckets(DURATION_SECONDS);
  readonly firstTokens = new Buckets(FIRST_TOKEN_SECONDS);
  readonly added = new Buckets(ADDED_SECONDS);
  /** The counts of calls by error code, and then by status class. */
  readonly byCode = new Map<string, Float64Array>();

  constructor(readonly labels: Readonly<Record<'route' | 'protocol' | 'strategy', string>>) {}
}

/** The token usage of one model at one upstream. */
class ModelMetrics {
  readonly tokens = new Float64Array(TOKEN_METERS.length);
  costE8 = 0n;
  upstreamCostE8 = 0n;

  constructor(readonly labels: Readonly<Record<'model' | 'upstream', string>>) {}
}

/** The metrics by path and then strategy. Two look-ups cost less than one with a joined text. */
const routes = new Map<string, Map<string, RouteMetrics>>();
const models = new Map<string, Map<string, ModelMetrics>>();
/** The number of calls whose clients disconnected, by how the calls were charged. */
const aborted = new Map<string, number>();

/** Counts a call that has ended. It only updates sums; the metrics are computed from them at each scrape. */
export function countCall({ path, protocol, leftAtMs, traceId, facts }: Call, ms: number): void {
  const { strategy = NONE, status, errorCode = NONE, firstTokenMs, addedMs, billing = 'released' } = facts;
  const route =
    routes.get(path)?.get(strategy) ??
    keep(routes, path, strategy, new RouteMetrics({ route: path, protocol, strategy }));
  const byClass = getOrInsert(route.byCode, errorCode, newCounts);
  const statusClass = Math.floor(status / 100);
  byClass[statusClass] = (byClass[statusClass] as number) + 1;
  route.durations.observe(ms / 1_000, traceId);
  if (firstTokenMs !== undefined) route.firstTokens.observe(firstTokenMs / 1_000, traceId);
  if (addedMs !== undefined) route.added.observe(addedMs / 1_000, traceId);
  if (leftAtMs !== undefined) aborted.set(billing, (aborted.get(billing) ?? 0) + 1);
  if (facts.usage !== undefined) countUsage(facts, facts.usage);
}

function countUsage({ model = NONE, upstream = NONE, costE8, upstreamCostE8 }: Call['facts'], usage: Usage): void {
  const metrics =
    models.get(model)?.get(upstream) ?? keep(models, model, upstream, new ModelMetrics({ model, upstream }));
  metrics.costE8 += costE8;
  metrics.upstreamCostE8 += upstreamCostE8;
  for (const { counts } of usage.passes)
    for (let at = 0; at < TOKEN_METERS.length; at += 1)
      metrics.tokens[at] = (metrics.tokens[at] as number) + (counts.get(TOKEN_METERS[at] as TokenMeter) ?? 0);
}

function keep<T>(all: Map<string, Map<string, T>>, one: string, other: string, made: T): T {
  getOrInsert(all, one, () => new Map<string, T>()).set(other, made);
  return made;
}

function newCounts(): Float64Array {
  return new Float64Array(STATUS_CLASSES.length);
}

function* each<T>(all: ReadonlyMap<string, ReadonlyMap<string, T>>): Generator<T> {
  for (const some of all.values()) yield* some.values();
}

function hasCounted({ buckets: { counts } }: Series): boolean {
  return counts.some((count) => count > 0);
}

function seriesOf(which: 'durations' | 'firstTokens' | 'added'): () => Iterable<Series> {
  return () => [...each(routes)].map(({ labels, [which]: buckets }) => ({ labels, buckets })).filter(hasCounted);
}

new Counter({
  name: 'tollgate_calls_total',
  help: 'Calls that have ended, by the class of their status and the error code.',
  labelNames: ['route', 'protocol', 'strategy', 'status', 'code'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const { labels, byCode } of each(routes))
      for (const [code, byClass] of byCode)
        byClass.forEach((calls, at) => {
          if (calls > 0) this.inc({ ...labels, status: STATUS_CLASSES[at] ?? NONE, code }, calls);
        });
  },
});
new QuickHistogram(
  { name: 'tollgate_call_duration_seconds', help: 'Time from the head of a call to its end.' },
  seriesOf('durations'),
);
new QuickHistogram(
  {
    name: 'tollgate_call_first_token_seconds',
    help: 'Time from the head of a streamed call to the first content of its answer.',
  },
  seriesOf('firstTokens'),
);
new QuickHistogram(
  {
    name: 'tollgate_call_added_seconds',
    help: "Time that the gateway itself adds until the head of an answer, without waiting for the client's body or upstreams.",
  },
  seriesOf('added'),
);
new Counter({
  name: 'tollgate_calls_aborted_total',
  help: 'Calls whose clients disconnected, by billing: `released` cost nothing, `partial` paid for the part received, others were read to their end.',
  labelNames: ['billing'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const [billing, calls] of aborted) this.inc({ billing }, calls);
  },
});
new Counter({
  name: 'tollgate_tokens_total',
  help: 'Tokens that calls were charged for, by meter.',
  labelNames: ['model', 'upstream', 'meter'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const { labels, tokens } of each(models))
      tokens.forEach((count, at) => {
        if (count > 0) this.inc({ ...labels, meter: TOKEN_METERS[at] ?? NONE }, count);
      });
  },
});
new Counter({
  name: 'tollgate_cost_usd_total',
  help: 'Amount in USD that calls were charged.',
  labelNames: ['model', 'upstream'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const { labels, costE8 } of each(models)) this.inc(labels, usdOf(costE8));
  },
});
new Counter({
  name: 'tollgate_upstream_cost_usd_total',
  help: 'Cost in USD of the same calls at the prices of the upstreams.',
  labelNames: ['model', 'upstream'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const { labels, upstreamCostE8 } of each(models)) this.inc(labels, usdOf(upstreamCostE8));
  },
});

function usdOf(amountE8: bigint): number {
  return Number(amountE8) / 1e8;
}
