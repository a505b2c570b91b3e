import type { Catalog, Entry, Model } from '../../core/catalog';
import { formatUsd } from '../../core/money';
import { dearestRateE8, type Price } from '../../core/price';
import type { Protocol } from '../../core/upstream';

/** `x-billing` of a model call; spec section 2.5. */
export interface TokenBilling {
  readonly type: 'PER_TOKEN';
  readonly pricingMode: 'PER_MODEL';
  /** The names models are shown under; `modelAliases` has their others. */
  readonly allowedModels: readonly string[];
  /** A model without a price here is refused. */
  readonly strictModelValidation: true;
  readonly modelPricing: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly modelAliases: Readonly<Record<string, readonly string[]>>;
  readonly streaming: { readonly supported: true; readonly format: 'sse' };
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
    streaming: { supported: true, format: 'sse' },
    estimatedMaxTokens: Math.max(
      0,
      ...offered.flatMap(({ entries }) => entries.map(({ model }) => model.estimatedMaxTokens)),
    ),
  };
}

function askable(model: Model, protocol: Protocol, mayAsk: (upstream: string) => boolean): readonly Entry[] {
  return model.entries.filter(
    ({ upstream }) =>
      upstream.disabled === undefined &&
      mayAsk(upstream.name) &&
      upstream.adapters.some(({ protocols }) => protocols.includes(protocol)),
  );
}

function dearest(entries: readonly Entry[]): Record<string, number> {
  const prices = entries.map(({ model }) => model.price);
  const rate = (kind: keyof Omit<Price, 'above'>) => perToken(dearestRateE8(prices, kind));
  return {
    inputPricePerToken: rate('inputE8'),
    outputPricePerToken: rate('outputE8'),
    cacheCreationPricePerToken: Math.max(rate('cacheWriteE8'), rate('cacheWrite1hE8')),
    cacheReadPricePerToken: rate('cacheReadE8'),
  };
}

/** USD per token of E8 per million. Read from decimal digits, so that it is written with the very same digits. */
function perToken(amountE8: bigint): number {
  return Number(`${formatUsd(amountE8)}e-6`);
}
