import { divideRoundingUp, E14_PER_E8, e8RoundedUp } from '../base/money';
import {
  INPUT_METERS,
  type Meter,
  OUTPUT_METERS,
  type Pass,
  TOKEN_METERS,
  type TokenMeter,
  type Usage,
  VARIANTS,
} from './usage';

/** The price of a million tokens in E8 (1e-8 USD), by meter. The configuration has it in decimal USD. */
export type Rates = Readonly<Record<TokenMeter, bigint>>;

/** The rates of a pass (one run of a model). If the input of the pass, cache included, has more than `tokens` tokens, the rates in `above` apply instead. */
export interface RateCard {
  readonly rates: Rates;
  readonly above: { readonly tokens: number; readonly rates: Rates } | undefined;
}

export type Variant = Pick<Pass, (typeof VARIANTS)[number]>;

/** A model's price at one upstream. */
export interface Price extends RateCard {
  /** The meters (kinds of tokens) without their own price. Their tokens cost the highest rate that could apply. */
  readonly unpriced: ReadonlySet<TokenMeter>;
  /** The price of one piece, such as a web search, in E8 (1e-8 USD), by meter. */
  readonly pieces: ReadonlyMap<Meter, bigint>;
  /** The prices of each tier, speed and region, and of their combinations, by `variantKey`. */
  readonly variants: ReadonlyMap<string, RateCard>;
  /** The prices that an answer may have if the call requests no variant, including the plain price. They determine the hold. */
  readonly possible: readonly RateCard[];
  /** The tiers, speeds and regions that an answer may have even if the call did not request them. */
  readonly may: Readonly<Record<(typeof VARIANTS)[number], readonly string[]>>;
}

/** Returns a price that has only rates for tokens, without variants. A meter that is omitted costs as much as `input` or `output`. */
export function plainPrice(
  rates: Readonly<Partial<Rates> & Pick<Rates, 'input' | 'output'>>,
  above?: RateCard['above'],
): Price {
  const ofOutput: readonly TokenMeter[] = OUTPUT_METERS;
  const all = TOKEN_METERS.map((meter) => [
    meter,
    rates[meter] ?? (ofOutput.includes(meter) ? rates.output : rates.input),
  ]);
  const card = { rates: Object.fromEntries(all) as Rates, above };
  return {
    ...card,
    unpriced: new Set(),
    pieces: new Map(),
    variants: new Map(),
    possible: [card],
    may: { tier: [], speed: [], geo: [] },
  };
}

/** The most choices that one call can request (`n` of the Chat protocol). */
export const MAX_CHOICES = 128;

export function variantKey({ tier = '', speed = '', geo = '' }: Variant): string {
  return `${tier}\n${speed}\n${geo}`;
}

/** Returns the most that one call can cost at an upstream, in E8: all tokens of the context window and of every choice, at the highest prices. */
export function maxModelCost({ context, maxOutput }: { context: number; maxOutput: number }, price: Price): bigint {
  const tokens = context + maxOutput;
  const cards = [price, ...price.variants.values()];
  const input = maxRateE8(cards, INPUT_METERS);
  const output = maxRateE8(cards, OUTPUT_METERS);
  return divideRoundingUp(BigInt(tokens) * (input + output * BigInt(MAX_CHOICES)), E14_PER_E8);
}

export interface Charge {
  readonly costE8: bigint;
  /** The cost before it is rounded up, in 1e-14 USD. */
  readonly exactE14: bigint;
  /** What was counted but has no price: meters, and variants of the answer, such as `tier priority`. */
  readonly unpriced: readonly string[];
}

/**
 * Returns the exact cost of all passes (runs of a model), rounded up once to 1e-8 USD. Counts must be integers ≥ 0. The input of each pass
 * alone is compared with the price's threshold.
 */
export function chargeOf({ passes }: Usage, priceOf: (pass: Pass) => Price): Charge {
  const unpriced: string[] = [];
  const sum = new ExactSum();
  for (const pass of passes) addCostOfPass(sum, pass, priceOf(pass), inputOf(pass), unpriced);
  return { costE8: sum.costE8, exactE14: sum.exactE14, unpriced };
}

/** A sum in 1e-14 USD. It is a plain number below 2^53, which is enough for nearly all calls, and a `bigint` above. */
class ExactSum {
  #small = 0;
  #large = 0n;

  add(count: number, rateE8: bigint): void {
    const sum = this.#small + count * Number(rateE8);
    if (sum <= Number.MAX_SAFE_INTEGER) this.#small = sum;
    else this.#large += BigInt(count) * rateE8;
  }

  get exactE14(): bigint {
    return this.#large + BigInt(this.#small);
  }

  get costE8(): bigint {
    return this.#large === 0n ? BigInt(e8RoundedUp(this.#small)) : divideRoundingUp(this.exactE14, E14_PER_E8);
  }
}

/** Returns the cost of a usage in E8, rounded up once, if all passes (runs of a model) have the same price. */
export function costOf(usage: Usage, price: Price): bigint {
  return chargeOf(usage, () => price).costE8;
}

function inputOf({ counts }: Pass): number {
  let sum = 0;
  for (const meter of INPUT_METERS) sum += counts.get(meter) ?? 0;
  return sum;
}

/** Adds the cost of a pass (one run of a model) to `sum`. Adds the names of counted things without a price to `unpriced`. */
function addCostOfPass(sum: ExactSum, pass: Pass, price: Price, input: number, unpriced: string[]): void {
  const cards = cardsOf(pass, price, unpriced);
  for (const [meter, count] of pass.counts) {
    if (count === undefined || count === 0) continue;
    if (isTokenMeter(meter)) {
      if (price.unpriced.has(meter)) unpriced.push(meter);
      sum.add(count, maxInForce(cards, meter, input));
    } else {
      const each = price.pieces.get(meter);
      if (each === undefined) unpriced.push(meter);
      else sum.add(count, each * E14_PER_E8);
    }
  }
}

const TOKENS: ReadonlySet<Meter> = new Set(TOKEN_METERS);

function isTokenMeter(meter: Meter): meter is TokenMeter {
  return TOKENS.has(meter);
}

/** Returns the prices of the answer's variant (tier, speed, region). If that variant has no price, returns all prices, of which the highest is charged. */
function cardsOf(pass: Pass, price: Price, unpriced: string[]): readonly RateCard[] {
  if (pass.tier === undefined && pass.speed === undefined && pass.geo === undefined) return [price];
  const card = price.variants.get(variantKey(pass));
  if (card !== undefined) return [card];
  for (const kind of VARIANTS) {
    const value = pass[kind];
    if (value !== undefined && !price.variants.has(variantKey({ [kind]: value }))) unpriced.push(`${kind} ${value}`);
  }
  return [price, ...price.variants.values()];
}

function maxInForce(cards: readonly RateCard[], meter: TokenMeter, input: number): bigint {
  let most = 0n;
  for (const { rates, above } of cards) {
    const rate = (above !== undefined && input > above.tokens ? above.rates : rates)[meter];
    if (rate > most) most = rate;
  }
  return most;
}

/** The longest time for which the vendor may cache the input of a call. */
export type CacheWrites = 'none' | 'minutes' | 'hour';

/** The input meters that may apply to a call with only text. The key is the longest time for which the vendor may cache its input. */
const TEXT_INPUT: Readonly<Record<CacheWrites, readonly TokenMeter[]>> = {
  none: ['input', 'cacheRead'],
  minutes: ['input', 'cacheRead', 'cacheWrite'],
  hour: ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h'],
};

/**
 * Returns the prices that an answer may have if the call requests a tier, speed or region. They include the price without the variant,
 * because an upstream may ignore the request. Returns undefined if a requested variant has no price.
 */
export function pricesFor(price: Price, asked: Variant | undefined): readonly RateCard[] | undefined {
  return asked === undefined ? price.possible : cardsWith(price, asked);
}

/** Returns the prices for all combinations of tiers, speeds and regions that are possible or requested; undefined if a requested one has no price. */
export function cardsWith(price: Omit<Price, 'possible'>, asked: Variant): readonly RateCard[] | undefined {
  const names = VARIANTS.map((kind) => [
    undefined,
    ...price.may[kind],
    ...(asked[kind] === undefined ? [] : [asked[kind]]),
  ]);
  const [tiers = [], speeds = [], geos = []] = names;
  for (const kind of VARIANTS)
    if (asked[kind] !== undefined && !price.variants.has(variantKey({ [kind]: asked[kind] }))) return undefined;
  const keys = tiers.flatMap((tier) => speeds.flatMap((speed) => geos.map((geo) => variantKey({ tier, speed, geo }))));
  return [price, ...keys.flatMap((key) => price.variants.get(key) ?? [])];
}

const isInput = (meter: TokenMeter): boolean => (INPUT_METERS as readonly TokenMeter[]).includes(meter);

/**
 * Returns the most that a call with at most these tokens can cost, in E8: every token at the highest price that it may have.
 * @param more the meters of tokens that are not text, such as speech
 */
export function maxCost(
  inputTokens: number,
  outputTokens: number,
  cards: readonly RateCard[],
  cacheWrites: CacheWrites = 'hour',
  more: readonly TokenMeter[] = [],
): bigint {
  const input = maxRateE8(cards, [...TEXT_INPUT[cacheWrites], ...more.filter(isInput)]);
  const output = maxRateE8(cards, ['output', ...more.filter((meter) => !isInput(meter))]);
  return divideRoundingUp(BigInt(inputTokens) * input + BigInt(outputTokens) * output, E14_PER_E8);
}

/** Returns the highest rate of these meters in all prices, below and above their thresholds, in E8 per million tokens. */
export function maxRateE8(cards: readonly RateCard[], meters: readonly TokenMeter[]): bigint {
  let most = 0n;
  for (const { rates, above } of cards) {
    for (const meter of meters) {
      if (rates[meter] > most) most = rates[meter];
      if (above !== undefined && above.rates[meter] > most) most = above.rates[meter];
    }
  }
  return most;
}

/** An approximate price as plain numbers, for comparing candidates. The gateway never charges with it. */
export interface RoughPrice extends RoughRates {
  readonly above: (RoughRates & { readonly tokens: number }) | undefined;
  /** The highest price of an input token. It depends on the key, the longest cache time, because writing to a cache may cost extra. */
  readonly maxInputRate: Readonly<Record<CacheWrites, number>>;
  readonly maxOutputRate: number;
}

interface RoughRates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
}

export function roughPrice({ rates, above, possible }: Price): RoughPrice {
  return {
    ...roughRates(rates),
    above: above && { ...roughRates(above.rates), tokens: above.tokens },
    maxInputRate: {
      none: Number(maxRateE8(possible, TEXT_INPUT.none)),
      minutes: Number(maxRateE8(possible, TEXT_INPUT.minutes)),
      hour: Number(maxRateE8(possible, TEXT_INPUT.hour)),
    },
    maxOutputRate: Number(maxRateE8(possible, ['output'])),
  };
}

function roughRates({ input, output, cacheRead }: Rates): RoughRates {
  return { input: Number(input), output: Number(output), cacheRead: Number(cacheRead) };
}
