import type { Candidate } from '../../../core/catalog';
import { costOf } from '../../../core/price';
import { UNKNOWN_USAGE } from '../../../core/usage';
import type { LiveFacts, Ranker } from './strategy';

/** The lowest expected price of this very call. */
export const rankByCost: Ranker = (first, second, facts) => {
  const difference = expectedCost(first, facts) - expectedCost(second, facts);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
};

function expectedCost({ model }: Candidate, { request }: LiveFacts): bigint {
  const outputTokens = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput) * request.choices;
  return costOf({ ...UNKNOWN_USAGE, inputTokens: request.inputTokensEstimate, outputTokens }, model.price);
}
