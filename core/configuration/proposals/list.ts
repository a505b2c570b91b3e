import { setImmediate as nextTurn } from 'node:timers/promises';
import { asObject, memberOf } from '../../base/json-values';
import { compileCheckInPlace, type Schema } from '../../base/settings';
import { normaliseModelName } from '../../catalog/model-names';
import type { TokenMeter } from '../../catalog/usage';
import { parseExactly } from '../../wire/json-in-steps';

/** The public lists of prices that the gateway reads, with their addresses. */
export const PUBLIC_LISTS = {
  'models.dev': 'https://models.dev/api.json',
  litellm: 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json',
} as const;

export type ListFormat = keyof typeof PUBLIC_LISTS;

export const LIST_FORMATS = Object.keys(PUBLIC_LISTS) as readonly ListFormat[];

/** A model of a public list, as one of the list's providers sells it. */
export interface ListedModel {
  readonly provider: string;
  /** The list's own name of the model. */
  readonly id: string;
  /** The prices of the meters that the list names, in E8 (1e-8 USD) per million tokens; undefined for what is no price. */
  readonly prices: ReadonlyMap<TokenMeter, bigint | undefined>;
}

export interface PublicList {
  readonly format: ListFormat;
  /** The models by their normalized names. */
  readonly models: ReadonlyMap<string, readonly ListedModel[]>;
}

/** A number of a list. It keeps its digits, because a JavaScript number would round them. Its members are hidden from the schemas. */
class ExactNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the number times 10^`shift` as a price in E8; undefined if it is negative or has further decimals. */
  timesTen(shift: number): bigint | undefined {
    const [, whole = '', fraction = '', exponent = '0'] =
      /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(this.#text) ?? [];
    const digits = (whole + fraction).replace(/^0+/, '');
    if (whole === '' || this.#text.length > MAX_DIGITS) return undefined;
    if (digits === '') return 0n;
    const significant = digits.replace(/0+$/, '');
    const power = Number(exponent) - fraction.length + shift + digits.length - significant.length;
    if (power < 0 || power > MAX_DIGITS) return undefined;
    return BigInt(significant) * 10n ** BigInt(power);
  }
}

/** A price has far fewer digits. The bound limits what a number such as 1e999999 costs. */
const MAX_DIGITS = 40;

interface Format {
  /** The schema of a member of the list. */
  readonly schema: Schema;
  /** The exponent of ten between the list's unit and 1e-8 USD per million tokens. */
  readonly shift: number;
  /** The list's names of the meters. */
  readonly meters: Readonly<Partial<Record<TokenMeter, string>>>;
  /** Returns the models in a member of the list, each with the object that has its prices. */
  modelsIn(name: string, member: never): readonly (Pick<ListedModel, 'provider' | 'id'> & { readonly card: unknown })[];
}

const FORMATS: Readonly<Record<ListFormat, Format>> = {
  // An object of providers, each with its models. Prices are USD per million tokens, under `cost`.
  'models.dev': {
    schema: {
      type: 'object',
      required: ['models'],
      properties: { models: { type: 'object', additionalProperties: { type: 'object' } } },
    },
    shift: 8,
    meters: {
      input: 'input',
      output: 'output',
      cacheRead: 'cache_read',
      cacheWrite: 'cache_write',
      audioInput: 'input_audio',
      audioOutput: 'output_audio',
    },
    modelsIn: (provider, { models }: { readonly models: object }) =>
      Object.entries(models).map(([id, model]) => ({ provider, id, card: memberOf(model, 'cost') })),
  },
  // An object of models, each with its provider. Prices are USD per token. Two members describe the list itself.
  litellm: {
    schema: {
      type: 'object',
      required: ['litellm_provider'],
      properties: { litellm_provider: { type: 'string' } },
    },
    shift: 14,
    meters: {
      input: 'input_cost_per_token',
      output: 'output_cost_per_token',
      cacheRead: 'cache_read_input_token_cost',
      cacheWrite: 'cache_creation_input_token_cost',
      cacheWrite1h: 'cache_creation_input_token_cost_above_1hr',
      audioInput: 'input_cost_per_audio_token',
      audioCacheRead: 'cache_read_input_audio_token_cost',
      audioOutput: 'output_cost_per_audio_token',
      imageInput: 'input_cost_per_image_token',
      imageOutput: 'output_cost_per_image_token',
    },
    modelsIn: (id, card: { readonly litellm_provider: string }) =>
      id === 'sample_spec' ? [] : [{ provider: card.litellm_provider, id, card }],
  },
};

/**
 * Reads a public list in the given format, or in the one that its content shows; undefined if it has none of them.
 * @throws JsonError if it is not JSON
 */
export async function readPublicList(bytes: Buffer, wanted?: ListFormat): Promise<PublicList | undefined> {
  const value = await parseExactly(bytes, (text) => new ExactNumber(text));
  for (const format of wanted === undefined ? LIST_FORMATS : [wanted]) {
    const models = await modelsOf(value, FORMATS[format]);
    if (models.size > 0) return { format, models };
  }
  return undefined;
}

/** How many models of a list are read in one step. Calls are served between two steps. */
const STEP_MODELS = 500;

/** Returns the models of a list. Members of another form, such as comments, have none. */
async function modelsOf(value: unknown, { schema, shift, meters, modelsIn }: Format): Promise<PublicList['models']> {
  const models = new Map<string, ListedModel[]>();
  const check = compileCheckInPlace<never>(schema, 1);
  let read = 0;
  for (const [name, member] of Object.entries(asObject(value) ?? {})) {
    const checked = check(member);
    if ('problems' in checked) continue;
    for (const { provider, id, card } of modelsIn(name, checked.value)) {
      read += 1;
      if (read % STEP_MODELS === 0) await nextTurn();
      const normalised = normaliseModelName(id);
      const same = models.get(normalised) ?? [];
      same.push({ provider, id, prices: pricesOf(card, meters, shift) });
      models.set(normalised, same);
    }
  }
  return models;
}

function pricesOf(card: unknown, meters: Format['meters'], shift: number): ListedModel['prices'] {
  const prices = new Map<TokenMeter, bigint | undefined>();
  for (const [meter, name] of Object.entries(meters) as [TokenMeter, string][]) {
    const value = memberOf(card, name);
    // A null says as little as a member that is absent.
    if (value === undefined || value === null) continue;
    prices.set(meter, value instanceof ExactNumber ? value.timesTen(shift) : undefined);
  }
  return prices;
}

/**
 * Finds what a list says of a model of an upstream. If several of the list's providers have the model, the one with the name of the
 * upstream counts, or else of the vendor in `from`. Returns undefined if no provider counts, or if the entries of that provider contradict
 * each other and none has exactly the model's name.
 */
export function findListed(
  { models }: PublicList,
  { upstream, from, model }: { readonly upstream: string; readonly from: string | undefined; readonly model: string },
): ListedModel | undefined {
  const all = models.get(normaliseModelName(model)) ?? [];
  const sellers = new Set(all.map(({ provider }) => provider));
  const seller = sellers.has(upstream) ? upstream : from?.split('/')[0];
  const own = sellers.size === 1 ? all : all.filter(({ provider }) => provider === seller);
  const spellings = [model, `${own[0]?.provider}/${model}`];
  const exact = spellings.map((spelling) => own.find(({ id }) => id === spelling)).find((each) => each !== undefined);
  if (exact !== undefined) return exact;
  const [first, ...others] = own;
  return others.every((each) => samePrices(each, first)) ? first : undefined;
}

function samePrices(one: ListedModel, other: ListedModel | undefined): boolean {
  if (one.prices.size !== other?.prices.size) return false;
  return [...one.prices].every(([meter, e8]) => other.prices.has(meter) && other.prices.get(meter) === e8);
}
