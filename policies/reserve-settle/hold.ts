import type { Foretold, ModelRequest } from '../../core/call';
import { type Candidate, canGoOn } from '../../core/catalog';
import { dearestCost } from '../../core/price';

/** Further apart than this, plain numbers say surely which of two costs is the higher. */
const SURELY_LESS = 1 - 1e-9;

/** Used again by every hold. */
let roughs = new Float64Array(64);

/**
 * The most a call can cost: the dearest of its candidates, each at its dearest prices and its own bounds of tokens. Plain numbers
 * find the few that can be the dearest; those are counted exactly.
 */
export function holdFor(request: ModelRequest, candidates: readonly Candidate[], foretold: Foretold): bigint {
  if (mayBeContinued(request, candidates, foretold)) return holdForBoth(request, candidates);
  const count = candidates.length;
  if (roughs.length < count) roughs = new Float64Array(count * 2);
  let dearest = 0;
  for (let at = 0; at < count; at += 1) {
    const rough = roughCost(request, candidates[at] as Candidate);
    roughs[at] = rough;
    if (rough > dearest) dearest = rough;
  }
  let holdE8 = 0n;
  for (let at = 0; at < count; at += 1) {
    if ((roughs[at] as number) < dearest * SURELY_LESS) continue;
    const { model } = candidates[at] as Candidate;
    const costE8 = dearestCost(inputTokens(request, model), outputTokens(request, model), [model.price]);
    if (costE8 > holdE8) holdE8 = costE8;
  }
  return holdE8;
}

/** The most tokens a call can use, for the limits by the minute. */
export function tokensFor(request: ModelRequest, candidates: readonly Candidate[]): number {
  let tokens = 0;
  for (const { model } of candidates) {
    tokens = Math.max(tokens, inputTokens(request, model) + outputTokens(request, model));
  }
  return tokens;
}

/** The most tokens one choice can say at any of them, also beyond what is expected of a call without a limit. */
export function mostOutputTokens({ maxOutputTokens }: ModelRequest, candidates: readonly Candidate[]): number {
  return Math.min(
    maxOutputTokens ?? Number.POSITIVE_INFINITY,
    Math.max(...candidates.map(({ model }) => model.maxOutput)),
  );
}

function roughCost(request: ModelRequest, { model, rough }: Candidate): number {
  return inputTokens(request, model) * rough.dearestInput + outputTokens(request, model) * rough.dearestOutput;
}

/** One candidate may begin the answer and another go on with it (`midStream: continue`). */
function mayBeContinued(
  { stream, choices }: ModelRequest,
  candidates: readonly Candidate[],
  foretold: Foretold,
): boolean {
  return foretold.mayBeContinued === true && stream && choices === 1 && candidates.some(canGoOn);
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
