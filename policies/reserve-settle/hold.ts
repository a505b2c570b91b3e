import type { ModelRequest } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { dearestCost } from '../../core/price';

/** The most a call can cost: the dearest of its candidates, each at its dearest prices and its own bounds of tokens. */
export function holdFor(request: ModelRequest, candidates: readonly Candidate[]): bigint {
  let holdE8 = 0n;
  for (const { model } of candidates) {
    const inputTokens = Math.min(request.inputTokensEstimate, model.context);
    const outputTokens =
      Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput) * request.choices;
    const costE8 = dearestCost(inputTokens, outputTokens, [model.price]);
    if (costE8 > holdE8) holdE8 = costE8;
  }
  return holdE8;
}
