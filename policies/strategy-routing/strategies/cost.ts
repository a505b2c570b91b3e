import type { Candidate, ModelEntry } from '../../../core/catalog/catalog';
import type { Asked, Strategy } from './strategy';

/**
 * Ranks by the lowest expected price of this call, in E8 (1e-8 USD). The price is a plain number, because it is an estimate that
 * no customer pays.
 */
export const byCost: Strategy = {
  score: (candidate, { cacheReadShare = 0 }, asked) => expectedE8(candidate, asked, cacheReadShare),
  noise: () => 0,
};

/**
 * Ranks calls of a session by price, as if the session stayed at each candidate. Every candidate gets the share that sessions read
 * from caches recently, at any upstream. One upstream's own share says little, because each session that moves there lowers it;
 * such prices would move all sessions to and fro. Only a share far below the others' is believed.
 */
export const bySessionCost: Strategy = {
  score: (candidate, { sessionReadShare }, asked) =>
    expectedE8(candidate, asked, Math.min(asked.sessionReadShare, sessionReadShare * BELIEVED)),
  noise: () => 0,
};

/**
 * The factor for an upstream whose sessions read little from its cache. Below a quarter of the usual share, its expected share is
 * its own share times this factor.
 */
const BELIEVED = 4;

function expectedE8({ model, rough }: Candidate, asked: Asked, cacheReadShare: number): number {
  const inputTokens = asked.request.inputTokensEstimate * asked.inputShare;
  const price = rough.above !== undefined && inputTokens > rough.above.tokens ? rough.above : rough;
  const inputRate = price.input + (price.cacheRead - price.input) * cacheReadShare;
  return (inputTokens * inputRate + expectedOutputTokens(model, asked) * price.output) / 1e6;
}

/** Returns the expected output: what recent answers had, and at most what the call or the model allows. */
function expectedOutputTokens(model: ModelEntry, { request, outputTokens }: Asked): number {
  const limit = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput);
  return Math.min(limit, outputTokens ?? limit) * request.choices;
}
