import type { Model } from '../../core/catalog';
import { formatUsd } from '../../core/money';
import type { Price } from '../../core/price';
import type { UpstreamHealth } from '../../core/upstream-health';

/** The upstreams' release dates are not known: the epoch says so in the field that both SDKs expect. */
const UNKNOWN_DATE = new Date(0);

/** The entries that calls can go to now: neither disabled nor taken out by an operator. */
export function routableEntries({ entries }: Model, health: UpstreamHealth): Model['entries'] {
  return entries.filter(
    ({ upstream: { name, disabled } }) => disabled === undefined && !health.upstream(name).isTakenOut,
  );
}

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

/** Of both tiers where a price has two. */
function dearest(prices: readonly Price[], kind: keyof Omit<Price, 'above'>): string {
  let most = 0n;
  for (const price of prices) {
    for (const tier of price.above === undefined ? [price] : [price, price.above]) {
      if (tier[kind] > most) most = tier[kind];
    }
  }
  return formatUsd(most);
}
