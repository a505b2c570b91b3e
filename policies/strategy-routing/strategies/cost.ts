import type { ModelEntry } from '../../../core/catalog/catalog';
import type { Asked, Strategy } from './strategy';

/** The lowest expected price of this very call, in E8 (1e-8 USD). An estimate, and therefore a plain number: nobody is charged it. */
export const byCost: Strategy = {
  score: ({ model, rough }, { cacheReadShare = 0 }, asked) => {
    const inputTokens = asked.request.inputTokensEstimate * asked.inputShare;
    const price = rough.above !== undefined && inputTokens > rough.above.tokens ? rough.above : rough;
    const inputRate = price.input + (price.cacheRead - price.input) * cacheReadShare;
    return (inputTokens * inputRate + expectedOutputTokens(model, asked) * price.output) / 1e6;
  },
  noise: () => 0,
};

/** As many as answers have had lately, and never more than the call or the model allows. */
function expectedOutputTokens(model: ModelEntry, { request, outputTokens }: Asked): number {
  const limit = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput);
  return Math.min(limit, outputTokens ?? limit) * request.choices;
}
