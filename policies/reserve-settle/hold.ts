import type { ModelRequest } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { dearestCost } from '../../core/price';

/** The most a call can cost: the dearest of its candidates, each at its dearest prices and its own bounds of tokens. */
export function holdFor(request: ModelRequest, candidates: readonly Candidate[]): bigint {
  if (mayBeContinued(request, candidates)) return holdForBoth(request, candidates);
  let holdE8 = 0n;
  for (const { model } of candidates) {
    const costE8 = dearestCost(inputTokens(request, model), outputTokens(request, model), [model.price]);
    if (costE8 > holdE8) holdE8 = costE8;
  }
  return holdE8;
}

/** One candidate may begin the answer and another go on with it (`midStream: continue`). */
function mayBeContinued({ stream, choices }: ModelRequest, candidates: readonly Candidate[]): boolean {
  return stream && choices === 1 && candidates.some(({ upstream }) => upstream.prefill);
}

/**
 * Input once and both outputs, each wherever it is dearest. Who goes on is given what is left of the limit that the call
 * names; without one, both may say as much as is held for a single answer.
 */
function holdForBoth(request: ModelRequest, candidates: readonly Candidate[]): bigint {
  const answers = request.maxOutputTokens === undefined ? 2 : 1;
  const input = Math.max(...candidates.map(({ model }) => inputTokens(request, model)));
  const output = Math.max(...candidates.map(({ model }) => outputTokens(request, model))) * answers;
  return dearestCost(
    input,
    output,
    candidates.map(({ model }) => model.price),
  );
}

function inputTokens(request: ModelRequest, { context }: Candidate['model']): number {
  return Math.min(request.inputTokensEstimate, context);
}

function outputTokens(request: ModelRequest, { estimatedMaxTokens, maxOutput }: Candidate['model']): number {
  return Math.min(request.maxOutputTokens ?? estimatedMaxTokens, maxOutput) * request.choices;
}
