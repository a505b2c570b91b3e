import { formatUsd } from '../base/money';
import { maxRateE8, type Price, type RateCard, type Rates } from '../catalog/price';
import { METERS, TOKEN_METERS, type TokenMeter } from '../catalog/usage';
import { mapOf, objectWith, orNull, shape } from '../http/shape';

/** Prices in requests and answers of the gateway's own API. Rates are per million tokens. */

/** The meters (kinds of tokens) that every displayed price includes. */
type UsualMeter = { [M in TokenMeter]: (typeof METERS)[M] extends { isUsual: true } ? M : never }[TokenMeter];
type ShownRates = Record<UsualMeter, string> & Partial<Record<TokenMeter, string>>;

function showRates(rates: Rates, unpriced: ReadonlySet<TokenMeter>): ShownRates {
  const shown = TOKEN_METERS.filter((meter) => isUsual(meter) || !unpriced.has(meter));
  return Object.fromEntries(shown.map((meter) => [meter, formatUsd(rates[meter])])) as ShownRates;
}

function isUsual(meter: TokenMeter): meter is UsualMeter {
  return 'isUsual' in METERS[meter];
}

function showCard({ rates, above }: RateCard, unpriced: ReadonlySet<TokenMeter>) {
  return {
    ...showRates(rates, unpriced),
    above: above === undefined ? null : { tokens: above.tokens, ...showRates(above.rates, unpriced) },
  };
}

/** Returns the name of a price variant: its tier, speed and region, such as `priority` or `fast us`. */
function inWords(key: string): string {
  return key.split('\n').filter(Boolean).join(' ');
}

/** Returns a price as answers contain it, with prices per piece and variants. */
export function showPrice(price: Price) {
  const { unpriced, pieces, variants } = price;
  return {
    ...showCard(price, unpriced),
    pieces: Object.fromEntries([...pieces].map(([meter, eachE8]) => [meter, formatUsd(eachE8)])),
    variants: Object.fromEntries([...variants].map(([key, card]) => [inWords(key), showCard(card, unpriced)])),
  };
}

/** The highest of several prices, separately for each rate, piece and variant, so that no call costs more than this. Amounts are decimal USD. */
export interface MaxPrice {
  /**
   * The rates per million tokens, including those of price variants (tier, speed or region) that an answer may have even if not requested.
   * The five usual meters (kinds of tokens) are always present. Other meters are present only if they have their own price.
   */
  readonly rates: ShownRates;
  readonly pieces: Readonly<Record<string, string>>;
  /** The rates per million tokens of answers with a tier, speed or region, by the variant's name. */
  readonly variants: Readonly<Record<string, ShownRates>>;
}

export function maxPrice(prices: readonly Price[]): MaxPrice {
  const meters = TOKEN_METERS.filter((meter) => isUsual(meter) || prices.some(({ unpriced }) => !unpriced.has(meter)));
  const ratesOf = (cards: readonly RateCard[]) =>
    Object.fromEntries(meters.map((meter) => [meter, formatUsd(maxRateE8(cards, [meter]))])) as ShownRates;
  const pieces = new Map<string, bigint>();
  const variants = new Map<string, RateCard[]>();
  for (const price of prices) {
    for (const [meter, eachE8] of price.pieces) if (eachE8 > (pieces.get(meter) ?? -1n)) pieces.set(meter, eachE8);
    for (const [key, card] of price.variants) variants.set(key, [...(variants.get(key) ?? []), card]);
  }
  return {
    rates: ratesOf(prices.flatMap(({ possible }) => possible)),
    pieces: Object.fromEntries([...pieces].map(([meter, eachE8]) => [meter, formatUsd(eachE8)])),
    variants: Object.fromEntries([...variants].map(([key, cards]) => [inWords(key), ratesOf(cards)])),
  };
}

/** Returns the highest rates of several prices. */
export function showMaxRates(prices: readonly Price[]): ShownRates {
  return maxPrice(prices).rates;
}

const RATES = ratesIf(isUsual);
const MORE_RATES = ratesIf((meter) => !isUsual(meter));

function ratesIf(isMeant: (meter: TokenMeter) => boolean) {
  const meters = Object.keys(METERS) as TokenMeter[];
  return Object.fromEntries(meters.filter(isMeant).map((meter) => [meter, shape.usd]));
}

/** The schema of what `showMaxRates` returns. */
export const RATES_PER_MILLION = objectWith(RATES, MORE_RATES);

const CARD = { ...RATES, above: orNull(objectWith({ tokens: shape.integer, ...RATES }, MORE_RATES)) };

/** The schema of what `showPrice` returns, for the OpenAPI document. */
export const PRICE_FIELDS = { ...CARD, pieces: mapOf(shape.usd), variants: mapOf(objectWith(CARD, MORE_RATES)) };
export const MORE_PRICE_FIELDS = MORE_RATES;

export const PRICE_PER_MILLION = objectWith(PRICE_FIELDS, MORE_PRICE_FIELDS);
