import type { Ending } from '../../core/calls/call';
import { entryOf } from '../../core/catalog/catalog';
import { type PriceOf, upstreamPrice } from '../../core/catalog/customer-prices';
import { type Charge, chargeOf } from '../../core/catalog/price';
import type { Usage } from '../../core/catalog/usage';
import { atMostCountable } from '../../core/money';

export type Charged = Exclude<Ending, { billing: 'released' }>;

export interface CappedCharge extends Charge {
  /** The cost above the hold at the customer's prices, which the platform pays. 0 if the gateway only estimated the usage. */
  readonly excessE8: bigint;
}

/** Returns the cost of an ending at the customer's prices. The customer pays at most the hold. */
export function chargeOfEnding(ending: Charged, heldE8: bigint, customerPriceOf: PriceOf): CappedCharge {
  const { costE8, exactE14, unpriced } = costOf(ending, customerPriceOf);
  if (costE8 <= heldE8) return { costE8, exactE14, unpriced, excessE8: 0n };
  const excessE8 = ending.isEstimate ? 0n : atMostCountable(costE8 - heldE8);
  return { costE8: heldE8, exactE14, unpriced, excessE8 };
}

/** Returns the cost of an ending at the upstream's prices. */
export function upstreamCostOf(ending: Charged): bigint {
  return costOf(ending, upstreamPrice).costE8;
}

function costOf({ usage, candidate }: Charged, priceOf: PriceOf): Charge {
  return chargeOf(usage, (pass) => priceOf(entryOf(candidate, pass)));
}

/** Returns the passes as the usage record shows them. A pass names its model only if another model than the requested one answered. */
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
