import { dearestPrice } from '../../../core/api/show-price';
import type { Model } from '../../../core/catalog/catalog';
import type { PriceOf } from '../../../core/catalog/customer-prices';
import { USUAL_USES } from '../../../core/dialects/dialects';
import type { UpstreamHealth } from '../../../core/health/health';
import { mapOf, object, objectWith, oneOf, shape } from '../../../core/http/shape';
import { mapValues } from '../../../core/map-values';

/** The date for an unknown release date, because both SDKs require the field. */
const UNKNOWN_DATE = '1970-01-01';

/** Counts the upstreams that a call would try now. If all upstreams of the model are ejected, counts all. */
function available(entries: Model['entries'], health: UpstreamHealth): number {
  const nowMs = health.now();
  const isIn = ({ upstream }: Model['entries'][number]) =>
    health.upstream(upstream.name).ejection.state(nowMs) === 'in';
  return entries.filter(isIn).length || entries.length;
}

/**
 * Shows a model: the fields that both SDKs read, then the gateway's own. Prices are the customer's at the most expensive upstream,
 * so no call costs more.
 */
export function toJson(model: Model, entries: Model['entries'], health: UpstreamHealth, priceOf: PriceOf) {
  const price = dearestPrice(entries.map((entry) => priceOf(entry.model)));
  const uses = toolUses(entries);
  const dates = entries.flatMap((entry) => entry.model.created ?? []).sort();
  const created = new Date(dates[0] ?? UNKNOWN_DATE);
  return {
    id: model.name,
    object: 'model',
    type: 'model',
    created: created.getTime() / 1_000,
    created_at: created.toISOString(),
    display_name: model.name,
    owned_by: 'tollgate',
    aliases: model.aliases,
    context: Math.max(...entries.map((entry) => entry.model.context)),
    max_output: Math.max(...entries.map((entry) => entry.model.maxOutput)),
    upstreams: available(entries, health),
    price_per_million: inSnakeCase(price.rates),
    ...(isEmpty(price.pieces) ? {} : { price_per_piece: inSnakeCase(price.pieces) }),
    ...(isEmpty(uses) ? {} : { tool_uses: inSnakeCase(uses) }),
    ...(isEmpty(price.variants) ? {} : { price_variants: mapValues(price.variants, inSnakeCase) }),
  };
}

/** Returns how often a call that sets no limit may use the vendor's own tools, at the upstream with the highest limits. */
function toolUses(entries: Model['entries']): Readonly<Record<string, number>> {
  const uses: Record<string, number> = {};
  for (const { model } of entries)
    for (const [meter, otherwise] of USUAL_USES)
      if (model.price.pieces.has(meter))
        uses[meter] = Math.max(uses[meter] ?? 0, model.toolUses?.get(meter) ?? otherwise);
  return uses;
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

/** Renames members such as `cacheWrite1h` to `cache_write_1h`. */
function inSnakeCase<T>(values: Readonly<Record<string, T>>): Record<string, T> {
  const named = (name: string) => name.replace(/[A-Z]|(?<=[a-z])\d/g, (each) => `_${each.toLowerCase()}`);
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [named(name), value]));
}

const PER_MILLION = {
  input: shape.usd,
  output: shape.usd,
  cache_write: shape.usd,
  cache_write_1h: shape.usd,
  cache_read: shape.usd,
};
const RATES = { ...object(PER_MILLION), additionalProperties: shape.usd };

export const MODEL = objectWith(
  {
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
    price_per_million: RATES,
  },
  { price_per_piece: mapOf(shape.usd), tool_uses: mapOf(shape.integer), price_variants: mapOf(RATES) },
);
