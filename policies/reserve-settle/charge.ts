import type { Counted, Ending } from '../../core/calls/call';
import { entryOf } from '../../core/catalog/catalog';
import { type PriceOf, upstreamPrice } from '../../core/catalog/customer-prices';
import { type Charge, chargeOf } from '../../core/catalog/price';
import type { Usage } from '../../core/catalog/usage';
import { atMostCountable } from '../../core/money';

export type Charged = Exclude<Ending, { billing: 'released' }>;

export interface CappedCharge extends Charge {
  /** What the answer costs above the hold, at the customer's prices: the platform's. 0 where we only counted. */
  readonly excessE8: bigint;
}

/** What an ending costs at the customer's prices: the customer pays at most what was held. */
export function chargeOfEnding(ending: Charged, heldE8: bigint, customerPriceOf: PriceOf): CappedCharge {
  const { costE8, exactE14, unpriced } = costOf(ending, customerPriceOf);
  if (costE8 <= heldE8) return { costE8, exactE14, unpriced, excessE8: 0n };
  const excessE8 = ending.isEstimate ? 0n : atMostCountable(costE8 - heldE8);
  return { costE8: heldE8, exactE14, unpriced, excessE8 };
}

/** What an ending costs at the upstream's prices. */
export function upstreamCostOf(ending: Charged): bigint {
  return costOf(ending, upstreamPrice).costE8;
}

function costOf(ending: Charged, priceOf: PriceOf): Charge {
  return chargeOf(
    partsOf(ending).map(({ usage, candidate }) => ({ usage, priceOf: (pass) => priceOf(entryOf(candidate, pass)) })),
  );
}

function partsOf({ parts, usage, candidate }: Charged): NonNullable<Counted['parts']> {
  return parts ?? [{ usage, candidate }];
}

/** The passes as the record has them: a model is named where another one than was asked has answered. */
export function recordedUsage({ usage, candidate }: Charged): Usage {
  if (usage.passes.every(({ model }) => model === undefined)) return usage;
  return {
    passes: usage.passes.map((pass) => {
      const { model, tier, speed, geo, counts } = pass;
      if (model === undefined) return pass;
      const { name } = entryOf(candidate, pass);
      return { model: name === candidate.model.name ? undefined : name, tier, speed, geo, counts };
    }),
  };
}
