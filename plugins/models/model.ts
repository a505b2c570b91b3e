import type { Model } from '../../core/catalog';
import { formatUsd } from '../../core/money';
import { dearestRateE8, type Price } from '../../core/price';
import { object, oneOf, shape } from '../../core/shape';
import type { UpstreamHealth } from '../../core/upstream-health';

/** The upstreams' release dates are not known: the epoch says so in the field that both SDKs expect. */
const UNKNOWN_DATE = new Date(0);

/** Those that would be asked at this moment; of a model whose upstreams are all ejected, all of them. */
function available(entries: Model['entries'], health: UpstreamHealth): number {
  const nowMs = health.now();
  const isIn = ({ upstream }: Model['entries'][number]) =>
    health.upstream(upstream.name).ejection.state(nowMs) === 'in';
  return entries.filter(isIn).length || entries.length;
}

/** The fields both SDKs read, then ours. Prices are the dearest of the upstreams that can be asked: no call costs more. */
export function toJson(model: Model, entries: Model['entries'], health: UpstreamHealth) {
  const prices = entries.map((entry) => entry.model.price);
  return {
    id: model.name,
    object: 'model',
    type: 'model',
    created: UNKNOWN_DATE.getTime() / 1_000,
    created_at: UNKNOWN_DATE.toISOString(),
    display_name: model.name,
    owned_by: 'tollgate',
    aliases: model.aliases,
    context: Math.max(...entries.map((entry) => entry.model.context)),
    max_output: Math.max(...entries.map((entry) => entry.model.maxOutput)),
    upstreams: available(entries, health),
    price_per_million: {
      input: dearest(prices, 'inputE8'),
      output: dearest(prices, 'outputE8'),
      cache_write: dearest(prices, 'cacheWriteE8'),
      cache_write_1h: dearest(prices, 'cacheWrite1hE8'),
      cache_read: dearest(prices, 'cacheReadE8'),
    },
  };
}

function dearest(prices: readonly Price[], kind: keyof Omit<Price, 'above'>): string {
  return formatUsd(dearestRateE8(prices, kind));
}

const PER_MILLION = { input: shape.usd, output: shape.usd, cache_write: shape.usd, cache_write_1h: shape.usd };

export const MODEL = object({
  id: shape.text,
  object: oneOf('model'),
  type: oneOf('model'),
  created: shape.integer,
  created_at: shape.time,
  display_name: shape.text,
  owned_by: shape.text,
  aliases: shape.texts,
  context: shape.integer,
  max_output: shape.integer,
  upstreams: shape.integer,
  price_per_million: object({ ...PER_MILLION, cache_read: shape.usd }),
});
