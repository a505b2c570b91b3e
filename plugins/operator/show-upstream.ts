import { TIERS, type Upstream } from '../../core/catalog';
import { formatUsd } from '../../core/money';
import type { Price } from '../../core/price';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import type { TakenOut } from '../../core/taken-out-upstreams';
import type { UpstreamGauge } from '../../core/upstream-gauge';
import type { UpstreamHealth } from '../../core/upstream-health';

/** In one word, what matters most first. */
export type UpstreamState = 'disabled' | 'taken-out' | 'ejected' | 'probing' | 'resting' | 'available';

/** An upstream as operators see it: configuration, health as this node knows it, prices. */
export function showUpstream(upstream: Upstream, health: UpstreamHealth, takenOut: TakenOut | undefined): object {
  const gauge = health.upstream(upstream.name);
  const nowMs = health.now();
  const { ejection, latencies } = gauge;
  return {
    name: upstream.name,
    url: upstream.url.href,
    adapters: upstream.adapters.map(({ name }) => name),
    tier: upstream.tier,
    weight: upstream.weight,
    state: stateOf(upstream, gauge, nowMs),
    disabledReason: upstream.disabled ?? null,
    takenOut:
      takenOut === undefined
        ? null
        : { since: takenOut.since.toISOString(), by: takenOut.actor, reason: takenOut.reason ?? null },
    ejectedUntil: toTime(ejection.outUntilMs, nowMs),
    restsUntil: toTime(gauge.restsUntilMs > nowMs ? gauge.restsUntilMs : undefined, nowMs),
    successRate: rounded(1 - gauge.failureRate(nowMs), 3),
    consecutiveFailures: ejection.consecutiveFailures,
    lastFailureAt: toTime(Number.isFinite(gauge.lastFailureMs) ? gauge.lastFailureMs : undefined, nowMs),
    attempts: { answered: gauge.answers, failed: failuresOf(gauge) },
    firstTokenMs: rounded(latencies.stream.value),
    wholeAnswerMs: rounded(latencies.whole.value),
    models: upstream.models.map((model) => ({
      name: model.name,
      aliases: model.aliases,
      context: model.context,
      maxOutput: model.maxOutput,
      firstTokenMs: rounded(gauge.models.get(model.name)?.latencies.stream.value),
      wholeAnswerMs: rounded(gauge.models.get(model.name)?.latencies.whole.value),
      pricePerMillion: showPrice(model.price),
    })),
  };
}

function failuresOf({ failures }: UpstreamGauge): number {
  let all = 0;
  for (const count of failures.values()) all += count;
  return all;
}

function stateOf(upstream: Upstream, gauge: UpstreamGauge, nowMs: number): UpstreamState {
  if (upstream.disabled !== undefined) return 'disabled';
  if (gauge.isTakenOut) return 'taken-out';
  const state = gauge.ejection.state(nowMs);
  if (state === 'probing') return 'probing';
  if (state !== 'in') return 'ejected';
  return gauge.restsUntilMs > nowMs ? 'resting' : 'available';
}

function showPrice(price: Price): object {
  return {
    ...rates(price),
    above: price.above === undefined ? null : { tokens: price.above.tokens, ...rates(price.above) },
  };
}

function rates(price: Omit<Price, 'above'>): object {
  return {
    input: formatUsd(price.inputE8),
    output: formatUsd(price.outputE8),
    cacheWrite: formatUsd(price.cacheWriteE8),
    cacheWrite1h: formatUsd(price.cacheWrite1hE8),
    cacheRead: formatUsd(price.cacheReadE8),
  };
}

/** A moment of the monotonic clock as people read it. */
function toTime(atMs: number | undefined, nowMs: number): string | null {
  return atMs === undefined ? null : new Date(Date.now() + atMs - nowMs).toISOString();
}

function rounded(value: number | undefined, digits = 0): number | null {
  return value === undefined ? null : Number(value.toFixed(digits));
}

const RATES = {
  input: shape.usd,
  output: shape.usd,
  cacheWrite: shape.usd,
  cacheWrite1h: shape.usd,
  cacheRead: shape.usd,
};

/** What `showUpstream` answers, as the OpenAPI document says it. */
export const UPSTREAM = object({
  name: shape.text,
  url: shape.text,
  adapters: shape.texts,
  tier: oneOf(...TIERS),
  weight: shape.number,
  state: oneOf('disabled', 'taken-out', 'ejected', 'probing', 'resting', 'available'),
  disabledReason: orNull(shape.text),
  takenOut: orNull(object({ since: shape.time, by: shape.text, reason: orNull(shape.text) })),
  ejectedUntil: orNull(shape.time),
  restsUntil: orNull(shape.time),
  successRate: orNull(shape.number),
  consecutiveFailures: shape.integer,
  lastFailureAt: orNull(shape.time),
  attempts: object({ answered: shape.integer, failed: shape.integer }),
  firstTokenMs: orNull(shape.number),
  wholeAnswerMs: orNull(shape.number),
  models: listOf(
    object({
      name: shape.text,
      aliases: shape.texts,
      context: shape.integer,
      maxOutput: shape.integer,
      firstTokenMs: orNull(shape.number),
      wholeAnswerMs: orNull(shape.number),
      pricePerMillion: object({ ...RATES, above: orNull(object({ tokens: shape.integer, ...RATES })) }),
    }),
  ),
});
