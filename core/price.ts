import { divideRoundingUp } from './money';
import type { Usage } from './usage';

/** A model's price at one upstream: E8 per million tokens, from the decimal USD of the YAML. */
export interface Price {
  readonly inputE8: bigint;
  readonly outputE8: bigint;
  readonly cacheWriteE8: bigint;
  readonly cacheWrite1hE8: bigint;
  readonly cacheReadE8: bigint;
  /** The price of the whole call once its input, cache included, has more than `tokens` tokens. */
  readonly above: (Omit<Price, 'above'> & { readonly tokens: number }) | undefined;
}

const TOKENS_PER_PRICE = 1_000_000n;

/** The most answers that one call can ask for (`n` of the Chat protocol). */
export const MOST_CHOICES = 128;

/** The most that one call can cost at an upstream: every token that is believed of each answer, at the dearest prices. */
export function mostCost({ context, maxOutput }: { context: number; maxOutput: number }, price: Price): bigint {
  const tokens = context + maxOutput;
  return dearestCost(tokens, tokens * MOST_CHOICES, [price]);
}

/** All input a call had, cache reads and writes included; what is unknown counts as nothing here. */
export function totalInputTokens(usage: Usage): number {
  return (
    (usage.inputTokens ?? 0) +
    (usage.cacheReadTokens ?? 0) +
    (usage.cacheWriteTokens ?? 0) +
    (usage.cacheWrite1hTokens ?? 0)
  );
}

/** The exact cost of a usage, rounded up once to the unit of 1e-8 USD. Counts must be integers ≥ 0. */
export function costOf(usage: Usage, price: Price): bigint {
  return divideRoundingUp(exactCost(usage, price, totalInputTokens(usage)), TOKENS_PER_PRICE);
}

/** The same for a call that several answered, each at its own price. */
export function costOfParts(parts: readonly { readonly usage: Usage; readonly price: Price }[]): bigint {
  const allInput = parts.reduce((sum, { usage }) => sum + totalInputTokens(usage), 0);
  const exact = parts.reduce((sum, { usage, price }) => sum + exactCost(usage, price, allInput), 0n);
  return divideRoundingUp(exact, TOKENS_PER_PRICE);
}

function exactCost(usage: Usage, price: Price, allInput: number): bigint {
  const inForce = price.above !== undefined && allInput > price.above.tokens ? price.above : price;
  return (
    BigInt(usage.inputTokens ?? 0) * inForce.inputE8 +
    BigInt(usage.outputTokens ?? 0) * inForce.outputE8 +
    BigInt(usage.cacheReadTokens ?? 0) * inForce.cacheReadE8 +
    BigInt(usage.cacheWriteTokens ?? 0) * inForce.cacheWriteE8 +
    BigInt(usage.cacheWrite1hTokens ?? 0) * inForce.cacheWrite1hE8
  );
}

/** What a call can cost at most, given bounds of its tokens: every input token at the dearest input price. */
export function dearestCost(inputTokens: number, outputTokens: number, prices: readonly Price[]): bigint {
  const input = dearestRateE8(prices, ...INPUT_KINDS);
  const output = dearestRateE8(prices, 'outputE8');
  return divideRoundingUp(BigInt(inputTokens) * input + BigInt(outputTokens) * output, TOKENS_PER_PRICE);
}

type Kind = keyof Omit<Price, 'above'>;

const INPUT_KINDS: readonly Kind[] = ['inputE8', 'cacheWriteE8', 'cacheWrite1hE8', 'cacheReadE8'];

/** E8 per million tokens of the dearest of some kinds, at the dearest of several prices and of their tiers. */
export function dearestRateE8(prices: readonly Price[], ...kinds: readonly Kind[]): bigint {
  let most = 0n;
  for (const price of prices) {
    for (const tier of price.above === undefined ? [price] : [price, price.above]) {
      for (const kind of kinds) if (tier[kind] > most) most = tier[kind];
    }
  }
  return most;
}

/** A price as plain numbers, for comparing what need not be exact. Nobody is charged by it. */
export interface RoughPrice extends RoughRates {
  readonly above: (RoughRates & { readonly tokens: number }) | undefined;
  /** The dearest that a token of either kind can cost. */
  readonly dearestInput: number;
  readonly dearestOutput: number;
}

interface RoughRates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
}

export function roughPrice(price: Price): RoughPrice {
  const { above } = price;
  return {
    ...roughRates(price),
    above: above && { ...roughRates(above), tokens: above.tokens },
    dearestInput: Number(dearestRateE8([price], ...INPUT_KINDS)),
    dearestOutput: Number(dearestRateE8([price], 'outputE8')),
  };
}

function roughRates({ inputE8, outputE8, cacheReadE8 }: Omit<Price, 'above'>): RoughRates {
  return { input: Number(inputE8), output: Number(outputE8), cacheRead: Number(cacheReadE8) };
}
