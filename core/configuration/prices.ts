import { parseUsd } from '../base/money';
import { type CustomerPriceList, parseFactor } from '../catalog/customer-prices';
import { normaliseModelName } from '../catalog/model-names';
import { cardsWith, type Price, type RateCard, type Rates, type Variant, variantKey } from '../catalog/price';
import { byMeter, INPUT_METERS, OUTPUT_METERS, TOKEN_METERS, type TokenMeter } from '../catalog/usage';
import type { LocatedProblem } from './problems';
import type { GatewaySettings, ModelSettings } from './schema';

type PriceSettings = ModelSettings['price'];
type VariantSettings = NonNullable<PriceSettings['tiers']>[string];
type RateSettings = Readonly<Partial<Record<TokenMeter, number | string>>>;
type Report = (at: readonly string[], message: string) => void;

/** For each meter (a kind of counted tokens): the meter whose rate applies if a price has no rate for it. */
const FALLBACK_METER = byMeter(({ fallback }) => fallback as TokenMeter | undefined);

/** The kinds of price variants (service tier, speed, region): each with its key in the configuration and its name in answers. */
const KINDS = [
  ['tiers', 'tier'],
  ['speeds', 'speed'],
  ['geos', 'geo'],
] as const;

/** Reads the price of a model at an upstream. Adds each mistake, with its path in the model's settings, to the problems. */
export function readPrice(
  path: readonly string[],
  model: Pick<ModelSettings, 'price' | 'mayAnswerWith'>,
  problems: LocatedProblem[],
): Price {
  const settings = model.price;
  const report = reportTo(problems, path);
  const plain = readCard(settings, ['price'], report);
  const variants = new Map<string, RateCard>();
  for (const variant of combinations((kind) => Object.keys(settings[kind] ?? {})))
    variants.set(variantKey(variant), readVariant(variant, settings, plain, report));
  const { tiers: tier, speeds: speed, geos: geo } = model.mayAnswerWith;
  const price = {
    ...plain,
    unpriced: new Set(TOKEN_METERS.filter((meter) => !isPriced(settings, meter))),
    pieces: readPieces(settings.pieces ?? {}, report),
    variants,
    may: { tier, speed, geo },
  };
  checkPossible(model.mayAnswerWith, variants, report);
  return { ...price, possible: cardsWith(price, {}) ?? [] };
}

/** Returns every combination of a tier, a speed and a region in which each may be absent, but not all three. */
function combinations(names: (kind: (typeof KINDS)[number][0]) => readonly string[]): readonly Variant[] {
  let all: Variant[] = [{}];
  for (const [kind, member] of KINDS)
    all = all.flatMap((each) => [each, ...names(kind).map((name) => ({ ...each, [member]: name }))]);
  return all.slice(1);
}

function checkPossible(
  wanted: ModelSettings['mayAnswerWith'],
  variants: ReadonlyMap<string, RateCard>,
  report: Report,
): void {
  for (const [kind, member] of KINDS)
    for (const [at, name] of wanted[kind].entries())
      if (!variants.has(variantKey({ [member]: name })))
        report(['mayAnswerWith', kind, String(at)], `"${name}" has no price under price.${kind}`);
}

/** Reads the price of a variant. The variant's own rates replace the plain ones; its factors then multiply the result. */
function readVariant(variant: Variant, settings: PriceSettings, plain: RateCard, report: Report): RateCard {
  let card = plain;
  let hasOwn = false;
  const factors: { readonly factor: bigint; readonly at: readonly string[] }[] = [];
  for (const [kind, member] of KINDS) {
    const name = variant[member];
    const own: VariantSettings | undefined = name === undefined ? undefined : settings[kind]?.[name];
    if (name === undefined || own === undefined) continue;
    const at = ['price', kind, name];
    if (own.input !== undefined) {
      const read = readCard(own, at, report);
      card = hasOwn ? dearerOf(card, read) : read;
      hasOwn = true;
    }
    if (own.factor !== undefined) factors.push({ factor: readDecimal(own.factor, [...at, 'factor'], report), at });
  }
  return factors.reduce((result, { factor, at }) => times(result, factor, at, report), card);
}

function dearerOf(one: RateCard, other: RateCard): RateCard {
  const dearer = (a: Rates, b: Rates) => byMeter((_, meter) => max(a[meter], b[meter]));
  const above = [one.above, other.above].flatMap((each) => each ?? []);
  return {
    rates: dearer(one.rates, other.rates),
    above:
      above.length === 0
        ? undefined
        : {
            tokens: Math.min(...above.map(({ tokens }) => tokens)),
            rates: dearer((one.above ?? one).rates, (other.above ?? other).rates),
          },
  };
}

/** The factor 1. A factor is in units of 1e-8, as amounts are. */
const ONE = 100_000_000n;

function times({ rates, above }: RateCard, factor: bigint, at: readonly string[], report: Report): RateCard {
  const scaled = (all: Rates) =>
    byMeter((_, meter) => {
      const exact = all[meter] * factor;
      if (exact % ONE !== 0n) report([...at, 'factor'], `gives the price of ${meter} more than 8 decimals`);
      return exact / ONE;
    });
  return { rates: scaled(rates), above: above && { tokens: above.tokens, rates: scaled(above.rates) } };
}

function readCard(
  settings: RateSettings & Pick<PriceSettings, 'above'>,
  at: readonly string[],
  report: Report,
): RateCard {
  const { above } = settings;
  return {
    rates: readRates(settings, at, report),
    above: above && { tokens: above.tokens, rates: readRates(above, [...at, 'above'], report) },
  };
}

/** Reads rates. A meter without a rate gets the highest rate of its kind, so that it is never free and never too cheap. */
function readRates(settings: RateSettings, at: readonly string[], report: Report): Rates {
  const written = new Map<TokenMeter, bigint>();
  for (const meter of TOKEN_METERS) {
    const value = settings[meter];
    if (value !== undefined) written.set(meter, readDecimal(value, [...at, meter], report));
  }
  const own = (meter: TokenMeter): bigint | undefined => {
    const fallback = FALLBACK_METER[meter];
    return written.get(meter) ?? (fallback && own(fallback));
  };
  const dearest = (meters: readonly TokenMeter[]) => meters.reduce((most, meter) => max(most, own(meter) ?? 0n), 0n);
  const [input, output] = [dearest(INPUT_METERS), dearest(OUTPUT_METERS)];
  return byMeter((_, meter) => own(meter) ?? (INPUTS.has(meter) ? input : output));
}

const INPUTS: ReadonlySet<TokenMeter> = new Set(INPUT_METERS);

function max(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

function isPriced(settings: RateSettings, meter: TokenMeter): boolean {
  const fallback = FALLBACK_METER[meter];
  return settings[meter] !== undefined || (fallback !== undefined && isPriced(settings, fallback));
}

function readPieces(settings: Readonly<Record<string, number | string>>, report: Report): ReadonlyMap<string, bigint> {
  return new Map(
    Object.entries(settings).map(([name, value]) => [name, readDecimal(value, ['price', 'pieces', name], report)]),
  );
}

/** Returns a function that adds a mistake, with its path below `path`, to the problems. */
export function reportTo(problems: LocatedProblem[], path: readonly string[]): Report {
  return (at, message) => void problems.push({ path: [...path, ...at], message });
}

/** Reads an amount, or a factor with its own `parse`. Reports a mistake, and returns 0 for it. */
export function readDecimal(
  value: number | string,
  at: readonly string[],
  report: Report,
  parse: (text: string) => bigint = parseUsd,
): bigint {
  try {
    return parse(decimalText(value));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    report(at, error.message);
    return 0n;
  }
}

/** Returns a number with all its digits as decimal text, because JavaScript would write 0.0000005 as 5e-7. */
export function decimalText(value: number | string): string {
  const text = String(value);
  const [, whole, fraction = '', exponent] = /^(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? [];
  if (typeof value === 'string' || whole === undefined) return text;
  return `0.${'0'.repeat(Number(exponent) - 1)}${whole}${fraction}`;
}

const NOTHING_MORE = { tiers: [], speeds: [], geos: [] };

/** Reads the lists of prices that customers pay instead of the upstreams' prices, by the name of the list. */
export function readCustomerPrices(
  { customerPrices = {}, serviceEndpoints }: GatewaySettings,
  problems: LocatedProblem[],
): ReadonlyMap<string, CustomerPriceList> {
  const known = new Set(
    Object.values(serviceEndpoints).flatMap(({ models }) =>
      Object.entries(models).flatMap(([name, { aliases }]) => [name, ...aliases].map(normaliseModelName)),
    ),
  );
  const lists = Object.entries(customerPrices).map(([name, { factor, models }]) => {
    const path = ['customerPrices', name];
    const prices = Object.entries(models).map(([model, { price }]): [string, Price] => {
      const at = [...path, 'models', model];
      const normalised = normaliseModelName(model);
      if (!known.has(normalised)) problems.push({ path: at, message: 'no upstream has a model with this name' });
      return [normalised, readPrice(at, { price, mayAnswerWith: NOTHING_MORE }, problems)];
    });
    const factorE8 = readDecimal(factor, ['factor'], reportTo(problems, path), parseFactor);
    return [name, { factorE8, models: new Map(prices) }] as const;
  });
  return new Map(lists);
}
