import type { Candidate, ModelEntry } from '../../../core/catalog/catalog';
import type { Asked, Strategy } from './strategy';

/** The lowest expected price of this very call, in E8 (1e-8 USD). An estimate, and therefore a plain number: nobody is charged it. */
export const byCost: Strategy = {
  score: (candidate, { cacheReadShare = 0 }, asked) => expectedE8(candidate, asked, cacheReadShare),
  noise: () => 0,
};

/**
 * The same for a call of a session, priced at each candidate as if the session stayed there: it reads from the cache what calls of
 * sessions read lately, whoever served them. The share that one upstream read says little, for it falls with every session that moves there;
 * prices by it would move all sessions to and fro. Only an upstream that keeps reading far less than the others is believed.
 */
export const bySessionCost: Strategy = {
  score: (candidate, { sessionReadShare }, asked) =>
    expectedE8(candidate, asked, Math.min(asked.sessionReadShare, sessionReadShare * BELIEVED)),
  noise: () => 0,
};

/** An upstream that reads less than a quarter of what sessions usually read is expected to read this many times what it read. */
const BELIEVED = 4;

function expectedE8({ model, rough }: Candidate, asked: Asked, cacheReadShare: number): number {
  const inputTokens = asked.request.inputTokensEstimate * asked.inputShare;
  const price = rough.above !== undefined && inputTokens > rough.above.tokens ? rough.above : rough;
  const inputRate = price.input + (price.cacheRead - price.input) * cacheReadShare;
  return (inputTokens * inputRate + expectedOutputTokens(model, asked) * price.output) / 1e6;
}

/** As many as answers have had lately, and never more than the call or the model allows. */
function expectedOutputTokens(model: ModelEntry, { request, outputTokens }: Asked): number {
  const limit = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput);
  return Math.min(limit, outputTokens ?? limit) * request.choices;
}
