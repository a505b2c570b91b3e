import { formatUsd, parseUsd } from '../base/money';
import { RecentlyUsed } from '../base/recently-used';
import { declaredFacts, type ModelFacts, regionText, retentionText, trainsText, UNKNOWN } from './facts';
import { maxRateE8, type Price, type RateCard } from './price';

/** What a call demands of the upstreams that may serve it, in the order in which a demand is named as the reason of an exclusion. */
export const DEMAND_NAMES = [
  'region',
  'retention',
  'trains',
  'max-input-price',
  'max-output-price',
  'context',
] as const;
export type DemandName = (typeof DEMAND_NAMES)[number];

/** Returns whether a demand concerns what happens to the content of a call. These demands come first. */
export function isOfContent(name: DemandName): boolean {
  return name === 'region' || name === 'retention' || name === 'trains';
}

/** One demand: its value as it was written, for answers and records, and as a number that can be compared. */
interface Limit {
  readonly text: string;
  readonly value: bigint;
}

/** The demands of a call. An upstream is a candidate only if it meets all of them. */
export interface Demands {
  /** All demands as one text, such as `region=eu; retention=none`. Equal demands have the same text and are the same object. */
  readonly text: string;
  /** The regions of which an upstream's must all be; empty if demands that were joined share none. */
  readonly region?: ReadonlySet<string> | undefined;
  /** For how many days an upstream may keep a call. */
  readonly retention?: Limit | undefined;
  readonly trains?: true | undefined;
  /** The highest prices, in 1e-8 USD per million tokens. */
  readonly maxInputPrice?: Limit | undefined;
  readonly maxOutputPrice?: Limit | undefined;
  readonly context?: Limit | undefined;
  /** Whether a demand concerns what happens to the content of the call: `region`, `retention` or `trains`. */
  readonly areOfContent: boolean;
  readonly areOfPrices: boolean;
}

type Parts = Omit<Demands, 'text' | 'areOfContent' | 'areOfPrices'>;

/** Stands for no region in texts of joined demands, which an upstream cannot meet. */
const NO_REGION = 'none';
const REGION = /^[a-z][a-z0-9-]*$/;
const DIGITS = /^\d+$/;
const DECIMAL = /^\d{1,9}(\.\d+)?$/;

const READERS: Readonly<Record<DemandName, (value: string) => Parts>> = {
  region: (value) => ({ region: readRegions(value) }),
  retention: (value) => ({ retention: value === 'none' ? { text: value, value: 0n } : readDigits(value, 'none or ') }),
  trains: (value) => {
    if (value !== 'no') throw new RangeError('expected no');
    return { trains: true };
  },
  'max-input-price': (value) => ({ maxInputPrice: readPrice(value) }),
  'max-output-price': (value) => ({ maxOutputPrice: readPrice(value) }),
  context: (value) => ({ context: readDigits(value) }),
};

function readRegions(value: string): ReadonlySet<string> {
  const regions = value.split(',').map((each) => each.trim());
  if (!regions.every((each) => REGION.test(each)))
    throw new RangeError('expected regions in lower case with commas between them, such as eu,us');
  return new Set(value === NO_REGION ? [] : regions);
}

function readDigits(value: string, or = ''): Limit {
  if (!DIGITS.test(value)) throw new RangeError(`expected ${or}a whole number`);
  return { text: value, value: BigInt(value) };
}

function readPrice(value: string): Limit {
  if (!DECIMAL.test(value)) throw new RangeError('expected USD per million tokens, such as 3 or 0.25');
  return { text: value, value: parseUsd(value) };
}

/** The texts of demands that were read lately. Clients repeat a few texts, and may send any number of others. */
const READ = new RecentlyUsed<Demands>(1_000);
const MADE = new RecentlyUsed<Demands>(1_000);

/**
 * Reads demands: `name=value` with `;` between them.
 * @throws RangeError that says what was expected
 */
export function readDemands(text: string): Demands {
  return READ.get(text) ?? READ.set(text, parse(text));
}

/** The longest text of demands that is accepted. Texts are cached, and are in records. Several that are joined may be longer. */
const MAX_LENGTH = 1_000;

/** Reads demands from outside. @throws RangeError as `readDemands`, and for a long text */
export function readGivenDemands(text: string): Demands {
  if (text.length > MAX_LENGTH) throw new RangeError(`expected at most ${MAX_LENGTH} characters`);
  return readDemands(text);
}

function parse(text: string): Demands {
  let parts: Parts = {};
  const names = new Set<string>();
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    const name = DEMAND_NAMES.find((each) => each === part.slice(0, equals).trim());
    if (equals === -1 || name === undefined)
      throw new RangeError(`expected name=value with ; between them, where the names are ${DEMAND_NAMES.join(', ')}`);
    if (names.has(name)) throw new RangeError(`has ${name} more than once`);
    names.add(name);
    try {
      parts = { ...parts, ...READERS[name](part.slice(equals + 1).trim()) };
    } catch (error) {
      throw error instanceof RangeError ? new RangeError(`${name}: ${error.message}`) : error;
    }
  }
  return made(parts);
}

function made(parts: Parts): Demands {
  const text = DEMAND_NAMES.flatMap((name) => {
    const value = valueText(parts, name);
    return value === undefined ? [] : [`${name}=${value}`];
  }).join('; ');
  const { region, retention, trains, maxInputPrice, maxOutputPrice } = parts;
  return (
    MADE.get(text) ??
    MADE.set(text, {
      ...parts,
      text,
      areOfContent: region !== undefined || retention !== undefined || trains !== undefined,
      areOfPrices: maxInputPrice !== undefined || maxOutputPrice !== undefined,
    })
  );
}

/** Returns the value of one demand as it was written; undefined if nothing is demanded. */
function valueText(demands: Parts, name: DemandName): string | undefined {
  switch (name) {
    case 'region':
      return demands.region && ([...demands.region].join() || NO_REGION);
    case 'retention':
      return demands.retention?.text;
    case 'trains':
      return demands.trains && 'no';
    case 'max-input-price':
      return demands.maxInputPrice?.text;
    case 'max-output-price':
      return demands.maxOutputPrice?.text;
    case 'context':
      return demands.context?.text;
  }
}

/** The pairs of demands that were joined lately, by both texts. */
const JOINED = new RecentlyUsed<Demands>(1_000);

/** Returns demands that are met only where all of these are; undefined if there are none. */
export function joinDemands(...all: readonly (Demands | undefined)[]): Demands | undefined {
  let joined: Demands | undefined;
  for (const each of all) joined = joined === undefined || each === undefined ? (joined ?? each) : join(joined, each);
  return joined;
}

function join(one: Demands, other: Demands): Demands {
  if (one === other) return one;
  const name = `${one.text}\n${other.text}`;
  return (
    JOINED.get(name) ??
    JOINED.set(
      name,
      made({
        region: one.region && other.region ? common(one.region, other.region) : (one.region ?? other.region),
        retention: least(one.retention, other.retention),
        trains: one.trains ?? other.trains,
        maxInputPrice: least(one.maxInputPrice, other.maxInputPrice),
        maxOutputPrice: least(one.maxOutputPrice, other.maxOutputPrice),
        context: most(one.context, other.context),
      }),
    )
  );
}

function common(one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...one].filter((each) => other.has(each)));
}

function least(one: Limit | undefined, other: Limit | undefined): Limit | undefined {
  return one === undefined || other === undefined ? (one ?? other) : other.value < one.value ? other : one;
}

function most(one: Limit | undefined, other: Limit | undefined): Limit | undefined {
  return one === undefined || other === undefined ? (one ?? other) : other.value > one.value ? other : one;
}

/** What is declared of an upstream's model, as far as demands concern it. */
export interface Declaration {
  readonly facts: ModelFacts;
  /** The highest prices of input and output that the caller pays, in 1e-8 USD per million tokens. */
  readonly inputE8: bigint;
  readonly outputE8: bigint;
  readonly context: number;
  /** The regions that an answer may report although the call asks for none. */
  readonly mayAnswerFrom: readonly string[];
}

/** Why an upstream is no candidate: the fact, what was demanded, and what is declared. */
export interface Exclusion {
  readonly fact: DemandName;
  readonly demanded: string;
  readonly has: string;
}

/** Returns the first demand that an upstream's model does not meet; undefined if it meets all. */
export function exclusionOf(demands: Demands, declared: Declaration): Exclusion | undefined {
  for (const fact of DEMAND_NAMES) {
    const demanded = valueText(demands, fact);
    if (demanded === undefined) continue;
    const has = unmet(demands, fact, declared);
    if (has !== undefined) return { fact, demanded, has };
  }
  return undefined;
}

/** Returns what is declared instead of what is demanded; undefined if the demand is met. */
function unmet(demands: Demands, name: DemandName, declared: Declaration): string | undefined {
  const { facts, inputE8, outputE8, context } = declared;
  switch (name) {
    case 'region':
      return foreignRegions(demands, declared);
    case 'retention':
      return facts.retention !== undefined && BigInt(facts.retention) <= (demands.retention?.value ?? 0n)
        ? undefined
        : retentionText(facts);
    case 'trains':
      return facts.trains === false ? undefined : trainsText(facts);
    case 'max-input-price':
      return inputE8 <= (demands.maxInputPrice?.value ?? 0n) ? undefined : formatUsd(inputE8);
    case 'max-output-price':
      return outputE8 <= (demands.maxOutputPrice?.value ?? 0n) ? undefined : formatUsd(outputE8);
    case 'context':
      return BigInt(context) >= (demands.context?.value ?? 0n) ? undefined : String(context);
  }
}

function foreignRegions({ region }: Demands, { facts, mayAnswerFrom }: Declaration): string | undefined {
  const isIn = (each: string) => region?.has(each) === true;
  if (facts.region?.every(isIn) !== true) return regionText(facts);
  const foreign = mayAnswerFrom.filter((each) => !isIn(each));
  return foreign.length === 0 ? undefined : [...new Set([...facts.region, ...foreign])].join();
}

interface DeclaringModel {
  readonly context: number;
  readonly facts?: ModelFacts | undefined;
}

/** Returns what is declared of a model for calls that pay this price. `cards`: the prices that apply if the call asks for a tier, speed or region. */
export function declaredOf(
  model: DeclaringModel,
  price: Price,
  cards: readonly RateCard[] = price.possible,
): Declaration {
  return {
    facts: declaredFacts(model),
    inputE8: maxRateE8(cards, ['input']),
    outputE8: maxRateE8(cards, ['output']),
    context: model.context,
    mayAnswerFrom: price.may.geo,
  };
}

/** Returns whether an upstream reported a region that is none of the demanded ones. */
export function isOutside(demands: Demands | undefined, region: string | undefined): boolean {
  return demands?.region !== undefined && region !== undefined && region !== UNKNOWN && !demands.region.has(region);
}

/** What was declared of the model of an attempt, in JSON. What was unknown is absent; prices are in 1e-8 USD. */
export interface RecordedDeclaration {
  readonly region?: readonly string[] | undefined;
  readonly retention?: number | undefined;
  readonly trains?: boolean | undefined;
  readonly input: string;
  readonly output: string;
  readonly context: number;
  readonly mayAnswerFrom?: readonly string[] | undefined;
}

/** Each price belongs to one model at one upstream, so that what is declared of the model is written once. */
const RECORDED = new WeakMap<Price, RecordedDeclaration>();

/** Returns what is declared of a model in the form of an attempt's record. `price`: what the caller pays. */
export function recordedDeclaration(model: DeclaringModel, price: Price): RecordedDeclaration {
  const known = RECORDED.get(price);
  if (known !== undefined) return known;
  const { facts, inputE8, outputE8, context, mayAnswerFrom } = declaredOf(model, price);
  const { region, retention, trains } = facts;
  const recorded = {
    ...{ region, retention, trains, context },
    input: inputE8.toString(),
    output: outputE8.toString(),
    ...(mayAnswerFrom.length > 0 && { mayAnswerFrom }),
  };
  RECORDED.set(price, recorded);
  return recorded;
}

/** Returns what was declared of the model of a recorded attempt. */
export function readDeclaration(recorded: RecordedDeclaration): Declaration {
  const { region, retention, trains, input, output, context, mayAnswerFrom = [] } = recorded;
  const facts = { region, retention, trains };
  return { facts, inputE8: BigInt(input), outputE8: BigInt(output), context, mayAnswerFrom };
}
