import { mapValues } from '../base/collections';
import { fail } from '../base/errors';
import { divideRoundingUp, E8_PER_USD, parseUsd } from '../base/money';
import { normaliseModelName } from './model-names';
import { cardsWith, type Price, type RateCard, type Rates, type RoughPrice, roughPrice } from './price';

/** One list of prices under `customerPrices`: what customers pay instead of the upstream's prices. */
export interface CustomerPriceList {
  /** The factor on the upstream's price for models that the list lacks, in units of 1e-8. */
  readonly factorE8: bigint;
  /** The prices by normalized model name. */
  readonly models: ReadonlyMap<string, Price>;
}

/** A model at an upstream, with the model's name, aliases and price at that upstream. */
interface PricedModel {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly price: Price;
}

/** Returns what the customer pays for a model. */
export type PriceOf = (model: PricedModel) => Price;

/** The price without a markup: the customer pays what the upstream charges. */
export const upstreamPrice: PriceOf = ({ price }) => price;

interface PricedCandidate {
  readonly model: PricedModel;
  readonly rough: RoughPrice;
  readonly priceOf?: PriceOf | undefined;
}

/** A call's candidates with the prices that the customer pays. */
export interface CustomerCandidates<C extends PricedCandidate> {
  readonly candidates: readonly C[];
  readonly priceOf: PriceOf;
}

interface Made {
  readonly price: Price;
  readonly rough: RoughPrice;
}

/** The most prices that are cached for one model. A limit is needed, because every account may have a different markup. */
const MAX_REMEMBERED = 1_000;

const FACTOR = /^\d/;
const MIN_FACTOR = E8_PER_USD / 10n;
const MAX_FACTOR = E8_PER_USD * 100n;

/**
 * Parses a factor into units of 1e-8.
 * @throws {RangeError} when it is no decimal number from 0.1 to 100.
 */
export function parseFactor(text: string): bigint {
  const factorE8 = parseUsd(text);
  if (factorE8 < MIN_FACTOR || factorE8 > MAX_FACTOR) throw new RangeError('expected a factor from 0.1 to 100');
  return factorE8;
}

/**
 * The prices of customers whose account or key has a markup: a factor such as `1.25`, or the name of a list. The gateway computes holds,
 * limits and charges with these prices. They do not change what the upstream charges.
 */
export class CustomerPrices {
  readonly #lists: ReadonlyMap<string, CustomerPriceList>;
  readonly #made = new WeakMap<PricedModel, Map<string, Made>>();

  constructor(lists: ReadonlyMap<string, CustomerPriceList>) {
    this.#lists = lists;
  }

  /**
   * Checks a markup before it is set.
   * @throws {RangeError} that says what was expected.
   */
  check(markup: string): void {
    if (FACTOR.test(markup)) parseFactor(markup);
    else if (!this.#lists.has(markup))
      throw new RangeError(
        `expected a factor such as "1.25", or the name of a list under customerPrices${this.#names()}`,
      );
  }

  /** Returns whether prices exist for calls with this markup. */
  has(markup: string | undefined): boolean {
    return markup === undefined || FACTOR.test(markup) || this.#lists.has(markup);
  }

  /** Returns the candidates at the customer's prices. @throws MODEL_NOT_PRICED when the markup's list is not configured */
  candidates<C extends PricedCandidate>(candidates: readonly C[], markup: string | undefined): CustomerCandidates<C> {
    if (markup === undefined) return { candidates, priceOf: upstreamPrice };
    const list = this.#listOf(markup);
    const priceOf: PriceOf = (model) => this.#of(model, markup, list).price;
    return {
      candidates: candidates.map((candidate) => {
        const { price, rough } = this.#of(candidate.model, markup, list);
        return { ...candidate, model: { ...candidate.model, price }, rough, priceOf };
      }),
      priceOf,
    };
  }

  /** Returns what the customer pays for models. @throws MODEL_NOT_PRICED when the markup's list is not configured */
  priceOf(markup: string | undefined): PriceOf {
    return this.candidates([], markup).priceOf;
  }

  #listOf(markup: string): CustomerPriceList {
    if (FACTOR.test(markup)) return { factorE8: parseFactor(markup), models: new Map() };
    const list = this.#lists.get(markup);
    if (list !== undefined) return list;
    const message = `The prices "${markup}" of this key are not in the operator's configuration.`;
    throw fail('MODEL_NOT_PRICED', { message });
  }

  #of(model: PricedModel, markup: string, list: CustomerPriceList): Made {
    const known = this.#made.get(model) ?? new Map<string, Made>();
    const found = known.get(markup);
    if (found !== undefined) return found;
    const price = customerPrice(model, list);
    const made = { price, rough: roughPrice(price) };
    if (known.size >= MAX_REMEMBERED) known.clear();
    this.#made.set(model, known.set(markup, made));
    return made;
  }

  #names(): string {
    return this.#lists.size === 0 ? ' (none is configured)' : ` (${[...this.#lists.keys()].join(', ')})`;
  }
}

function customerPrice({ name, aliases, price }: PricedModel, { factorE8, models }: CustomerPriceList): Price {
  for (const each of [name, ...aliases]) {
    const own = models.get(normaliseModelName(each));
    // Copies the upstream's possible tiers, speeds and regions into the list's price, because they are the same for every customer.
    if (own !== undefined) return withPossible({ ...own, may: price.may });
  }
  return scaled(price, factorE8);
}

/** Returns a price with every rate and piece price multiplied by the factor, each rounded up to 1e-8 USD. */
function scaled(price: Price, factorE8: bigint): Price {
  const times = (amountE8: bigint) => divideRoundingUp(amountE8 * factorE8, E8_PER_USD);
  const card = ({ rates, above }: RateCard): RateCard => ({
    rates: mapValues(rates, times) as Rates,
    above: above && { tokens: above.tokens, rates: mapValues(above.rates, times) as Rates },
  });
  return withPossible({
    ...card(price),
    unpriced: price.unpriced,
    pieces: new Map([...price.pieces].map(([meter, each]) => [meter, times(each)])),
    variants: new Map([...price.variants].map(([key, each]) => [key, card(each)])),
    may: price.may,
  });
}

function withPossible(price: Omit<Price, 'possible'>): Price {
  return { ...price, possible: cardsWith(price, {}) ?? [] };
}
