import { type MaxPrice, maxPrice } from '../../core/api/show-price';
import { mapValues } from '../../core/base/collections';
import { type Catalog, type Entry, type Model, protocolsOf } from '../../core/catalog/catalog';
import { hasOutput, operationOf, protocolOf } from '../../core/catalog/protocols';
import type { PipelineSettings } from '../../core/configuration/pipelines';
import { asksUpstream, protocolsAt } from '../../core/gateway/pipeline-upstreams';

/** `x-billing` of a model call; docs/contract.md, section 1.3. */
interface TokenBilling {
  readonly type: 'PER_TOKEN';
  readonly pricingMode: 'PER_MODEL';
  /** The names of the models; `modelAliases` has their other names. */
  readonly allowedModels: readonly string[];
  /** Always true, because the gateway rejects calls of a model without a price. */
  readonly strictModelValidation: true;
  readonly modelPricing: Readonly<Record<string, ModelPricing>>;
  readonly modelAliases: Readonly<Record<string, readonly string[]>>;
  readonly streaming: { readonly supported: true; readonly format: 'sse' } | { readonly supported: false };
  readonly estimatedMaxTokens: number;
}

/** Returns the prices of the calls on a path: for each model, those of the most expensive upstream of its pipeline. No call costs more than these. */
export function tokenBilling(catalog: Catalog, path: string, pipeline: PipelineSettings): TokenBilling {
  const protocol = protocolOf(path);
  const offered = catalog.models
    .map((model) => ({ model, entries: askable(model, path, pipeline) }))
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

function askable(model: Model, path: string, pipeline: PipelineSettings): readonly Entry[] {
  const mayAsk = asksUpstream(pipeline);
  return model.entries.filter((entry) => {
    const protocols = operationOf(path) === undefined ? protocolsAt(pipeline, entry) : protocolsOf(entry);
    return entry.upstream.disabled === undefined && mayAsk(entry.upstream.name) && protocols.includes(protocolOf(path));
  });
}

/** A model's prices as numbers: per token and, if configured, per piece (such as a web search) and per token of each tier, speed and region. */
type ModelPricing = Readonly<
  Record<string, number | Readonly<Record<string, number | Readonly<Record<string, number>>>>>
>;

function dearest(entries: readonly Entry[]): ModelPricing {
  const { rates, pieces, variants } = maxPrice(entries.map(({ model }) => model.price));
  const hasParts = (parts: object) => Object.keys(parts).length > 0;
  return {
    ...perToken(rates),
    ...(hasParts(pieces) && { pricePerPiece: mapValues(pieces, (each) => Number(each)) }),
    ...(hasParts(variants) && { variants: mapValues(variants, perToken) }),
  };
}

/** Names the prices per token. `x-billing` has one price for cache writes, so the higher of the 5-minute and the 1-hour price is shown. */
function perToken({ cacheWrite, cacheWrite1h, ...rates }: MaxPrice['rates']): Readonly<Record<string, number>> {
  const cacheCreation = Number(cacheWrite) > Number(cacheWrite1h) ? cacheWrite : cacheWrite1h;
  const named = Object.entries({ ...rates, cacheCreation });
  // Parses the decimal price of a million tokens with a shifted exponent, so that no digit changes.
  return Object.fromEntries(named.map(([meter, amount]) => [`${meter}PricePerToken`, Number(`${amount}e-6`)]));
}
