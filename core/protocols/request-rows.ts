import { asObject } from '../base/json-values';
import type { Feature } from '../catalog/conversation';
import type { Variant } from '../catalog/price';
import type {
  CostRule,
  Kind,
  MemberRow,
  PartRule,
  SharedObject,
  ToolRule,
  TranslatedRow,
  TranslationRule,
} from './request-table';

/** How many times more than once a vendor runs the model in one call for its own tools. Anthropic pauses the turn after ten runs. */
export const PASSES_OF_A_LOOP = 9;

/** The most uses of one tool that a request may set. A higher number is a mistake, and its hold would be too large to compute. */
export const MAX_TOOL_USES = 1_000;

export const free = (why: string): CostRule => ({ class: 'free', why });
export const bounded = (why: string): CostRule => ({ class: 'bounded', why });
export const outside = (why: string) => ({ class: 'outside', why }) as const;
export const priced = (why: string): CostRule => ({ class: 'priced', why });

/** Returns the row of the request table for a member that selects a tier, speed or region. Models may have separate prices for these. */
export function variant(asks: keyof Variant, ...harmless: readonly string[]): MemberRow {
  return { ...priced(`a ${VARIANTS[asks]} with a price of its own`), asks, harmless };
}

const VARIANTS: Readonly<Record<keyof Variant, string>> = { tier: 'tier', speed: 'speed', geo: 'region' };

export function kept(names: SharedObject, why: string): MemberRow {
  return { class: 'outside', why, names };
}

export const carried = (why: string, ...features: readonly Feature[]) => translated('carried', why, features);
export const dropped = (why: string) => translated('dropped', why);
export const refused = (why: string) => translated('refused', why);

/** Returns a translation rule that refuses a member, except for values that change nothing. */
export function refusedUnless(harmless: readonly unknown[], why: string): TranslatedRow {
  return { ...refused(why), harmless };
}

function translated(action: TranslationRule['action'], why: string, features: readonly Feature[] = []): TranslatedRow {
  return { translation: { action, why }, ...(features.length > 0 && { features }) };
}

/** Returns a record that has the same row of a request table under each of several names. */
export function each<Row>(row: Row, ...names: readonly string[]): Readonly<Record<string, Row>> {
  return Object.fromEntries(names.map((name) => [name, row]));
}

export const BOOLEAN: Kind = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' };
export const OBJECT: Kind = { expected: 'an object', accepts: (value) => asObject(value) !== undefined };
export const LIST: Kind = { expected: 'an array', begins: '[' };
export const STRING: Kind = { expected: 'a string', begins: '"' };
export const STRING_OR_LIST: Kind = { expected: 'a string or an array', begins: '"[' };

export function count(least: number, most = Number.MAX_SAFE_INTEGER): Kind {
  return {
    expected: most < Number.MAX_SAFE_INTEGER ? `an integer from ${least} to ${most}` : `an integer ≥ ${least}`,
    accepts: (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
  };
}

export function numberUpTo(most: number): Kind {
  return {
    expected: `a number from 0 to ${most}`,
    accepts: (value) => typeof value === 'number' && value >= 0 && value <= most,
  };
}

export const CACHE_HINT = dropped('is a hint for the cache of its vendor');

/** The row of the request table for a member that requests background processing, in which the client fetches the answer later. */
export const LATER: MemberRow = {
  class: 'refused',
  why: 'billed after the call has ended',
  ...refusedUnless([false], 'asks for an answer after the call'),
};

/** The cost rule of audio in a request. The next constants are cost rules of other content parts that several protocols have. */
export const SPEECH: PartRule = {
  class: 'priced',
  why: 'audio has prices of its own',
  needs: { meters: ['audioInput', 'audioCacheRead'] },
};
export const TEXT_PART: PartRule = { class: 'bounded', why: 'its text is in the body' };
export const ECHO: PartRule = { class: 'bounded', why: 'the client sends back what an answer held' };
/** The cost rules of images by their source: data, URL or file. The next constant has the cost rules of documents. */
export const IMAGE = {
  data: { class: 'bounded', why: 'counts as `imageTokens`', counts: 'image' },
  url: { class: 'outside', why: 'the vendor fetches it', counts: 'imageByUrl', leaves: 'fetch' },
  file: { class: 'outside', why: 'a file at the vendor', counts: 'imageByUrl', names: 'file_id' },
} as const satisfies Readonly<Record<string, PartRule>>;
export const DOCUMENT = {
  data: { class: 'outside', why: 'the vendor unpacks it', counts: 'document' },
  url: { class: 'outside', why: 'the vendor fetches it', counts: 'document', leaves: 'fetch' },
  file: { class: 'outside', why: 'a file at the vendor', counts: 'document', names: 'file_id' },
} as const satisfies Readonly<Record<string, PartRule>>;

/** The cost rule of vendor-defined tools that run at the client. The next constants are cost rules of tools that run at the vendor. */
export const AT_CLIENT: ToolRule & TranslatedRow = {
  class: 'free',
  why: 'runs at the client',
  overheads: 1,
  ...refused('is a tool that its vendor defines'),
};
export const AT_VENDOR = refused('is a tool that runs at its vendor');

/** The cost rule of a request part that lets the vendor compact the context, which runs the model once more. */
export const COMPACTION = { ...outside('compaction runs the model once more'), furtherPasses: 1, furtherAnswers: 1 };
