import type { ModelEntry } from '../../../core/catalog';
import type { Price } from '../../../core/price';
import type { CandidateFacts } from '../../../core/upstream-gauge';
import type { Asked, Strategy } from './strategy';

/** The lowest expected price of this very call, in E8 (1e-8 USD). An estimate, and therefore a plain number: nobody is charged it. */
export const scoreByCost: Strategy = ({ model }, facts, asked) => expectedCostE8(model, facts, asked);

function expectedCostE8(model: ModelEntry, { cacheReadShare = 0 }: CandidateFacts, asked: Asked): number {
  const inputTokens = asked.request.inputTokensEstimate * asked.inputShare;
  const price = ratesOf(model.price, inputTokens);
  const inputRate = price.input + (price.cacheRead - price.input) * cacheReadShare;
  return (inputTokens * inputRate + expectedOutputTokens(model, asked) * price.output) / 1e6;
}

/** As many as answers have had lately, and never more than the call or the model allows. */
function expectedOutputTokens(model: ModelEntry, { request, outputTokens }: Asked): number {
  const limit = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput);
  return Math.min(limit, outputTokens ?? limit) * request.choices;
}

/** Prices as plain numbers, made once per price. */
interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly above: (Omit<Rates, 'above'> & { readonly tokens: number }) | undefined;
}

const ratesByPrice = new WeakMap<Price, Rates>();

function ratesOf(price: Price, inputTokens: number): Omit<Rates, 'above'> {
  let rates = ratesByPrice.get(price);
  if (rates === undefined) {
    const { above } = price;
    rates = { ...toRates(price), above: above === undefined ? undefined : { ...toRates(above), tokens: above.tokens } };
    ratesByPrice.set(price, rates);
  }
  return rates.above !== undefined && inputTokens > rates.above.tokens ? rates.above : rates;
}

function toRates({ inputE8, outputE8, cacheReadE8 }: Omit<Price, 'above'>): Omit<Rates, 'above'> {
  return { input: Number(inputE8), output: Number(outputE8), cacheRead: Number(cacheReadE8) };
}
