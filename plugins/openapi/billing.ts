import { type DearestPrice, dearestPrice } from '../../core/api/show-price';
import { type Catalog, type Entry, type Model, protocolsOf } from '../../core/catalog/catalog';
import { hasOutput, type Protocol } from '../../core/catalog/protocols';
import { mapValues } from '../../core/map-values';

/** `x-billing` of a model call; docs/contract.md, section 1.3. */
export interface TokenBilling {
  readonly type: 'PER_TOKEN';
  readonly pricingMode: 'PER_MODEL';
  /** The names models are shown under; `modelAliases` has their others. */
  readonly allowedModels: readonly string[];
  /** A model without a price here is refused. */
  readonly strictModelValidation: true;
  readonly modelPricing: Readonly<Record<string, ModelPricing>>;
  readonly modelAliases: Readonly<Record<string, readonly string[]>>;
  readonly streaming: { readonly supported: true; readonly format: 'sse' } | { readonly supported: false };
  readonly estimatedMaxTokens: number;
}

/**
 * What calls of a protocol cost, per model the dearest of the upstreams that can be asked: no call costs more.
 * @param mayAsk whether the pipeline asks an upstream of this name
 */
export function tokenBilling(
  catalog: Catalog,
  protocol: Protocol,
  mayAsk: (upstream: string) => boolean,
): TokenBilling {
  const offered = catalog.models
    .map((model) => ({ model, entries: askable(model, protocol, mayAsk) }))
    .filter(({ entries }) => entries.length > 0);
  return {
    type: 'PER_TOKEN',
    pricingMode: 'PER_MODEL',
    allowedModels: offered.map(({ model }) => model.name),
    strictModelValidation: true,
    modelPricing: Object.fromEntries(offered.map(({ model, entries }) => [model.name, dearest(entries)])),
    modelAliases: Object.fromEntries(offered.map(({ model }) => [model.name, model.aliases])),
    streaming: hasOutput(protocol) ? { supported: true, format: 'sse' } : { supported: false },
    estimatedMaxTokens: Math.max(
      0,
      ...offered.flatMap(({ entries }) => entries.map(({ model }) => model.estimatedMaxTokens)),
    ),
  };
}

function askable(model: Model, protocol: Protocol, mayAsk: (upstream: string) => boolean): readonly Entry[] {
  return model.entries.filter(
    (entry) =>
      entry.upstream.disabled === undefined && mayAsk(entry.upstream.name) && protocolsOf(entry).includes(protocol),
  );
}

/** What a call of a model costs: numbers per token, and where there are some per piece and per token of each variant. */
type ModelPricing = Readonly<
  Record<string, number | Readonly<Record<string, number | Readonly<Record<string, number>>>>>
>;

function dearest(entries: readonly Entry[]): ModelPricing {
  const { rates, pieces, variants } = dearestPrice(entries.map(({ model }) => model.price));
  const hasParts = (parts: object) => Object.keys(parts).length > 0;
  return {
    ...perToken(rates),
    ...(hasParts(pieces) && { pricePerPiece: mapValues(pieces, (each) => Number(each)) }),
    ...(hasParts(variants) && { variants: mapValues(variants, perToken) }),
  };
}

/** The specification has one price for writing to a cache: the dearer one. */
function perToken({ cacheWrite, cacheWrite1h, ...rates }: DearestPrice['rates']): Readonly<Record<string, number>> {
  const cacheCreation = Number(cacheWrite) > Number(cacheWrite1h) ? cacheWrite : cacheWrite1h;
  const named = Object.entries({ ...rates, cacheCreation });
  // Read from decimal digits of a million tokens, so that it is written with the very same digits.
  return Object.fromEntries(named.map(([meter, amount]) => [`${meter}PricePerToken`, Number(`${amount}e-6`)]));
}
