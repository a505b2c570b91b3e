import type { ModelRequest } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { dearestCost, dearestRates } from '../../core/price';

/** Further apart than this, plain numbers say surely which of two costs is the higher. */
const SURELY_LESS = 1 - 1e-9;

/**
 * The most a call can cost: the dearest of its candidates, each at its dearest prices and its own bounds of tokens. Plain numbers
 * find the few that can be the dearest; those are counted exactly.
 */
export function holdFor(request: ModelRequest, candidates: readonly Candidate[]): bigint {
  let dearest = 0;
  for (const candidate of candidates) dearest = Math.max(dearest, roughCost(request, candidate));
  let holdE8 = 0n;
  for (const candidate of candidates) {
    if (roughCost(request, candidate) < dearest * SURELY_LESS) continue;
    const costE8 = dearestCost(inputBound(request, candidate), outputBound(request, candidate), [
      candidate.model.price,
    ]);
    if (costE8 > holdE8) holdE8 = costE8;
  }
  return holdE8;
}

function roughCost(request: ModelRequest, candidate: Candidate): number {
  const { input, output } = dearestRates(candidate.model.price);
  return inputBound(request, candidate) * input + outputBound(request, candidate) * output;
}

function inputBound({ inputTokensEstimate }: ModelRequest, { model }: Candidate): number {
  return Math.min(inputTokensEstimate, model.context);
}

function outputBound({ maxOutputTokens, choices }: ModelRequest, { model }: Candidate): number {
  return Math.min(maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput) * choices;
}
