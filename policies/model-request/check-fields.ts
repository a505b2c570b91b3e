import type { ModelRequest } from '../../core/calls/call';
import { MOST_CHOICES } from '../../core/catalog/price';
import { PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError } from '../../core/errors';
import { type MemberPlace, sliceChunks, textOfChunks } from '../../core/http/json-members';
import { MAX_TOKEN_TEXT_BYTES, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../core/http/json-scanner';
import { DIALECTS } from '../../core/protocols/dialects';
import type { LimitPlace } from '../../core/protocols/reading';
import { type CallObserver, type ItemPlace, MOST_USES } from './observe-call';
import { lookalikeOf, notSupported } from './refusals';
import { hasDoubtfulKeys, namesKept } from './short-texts';
import { type MemberSettings, type WeighedMembers, weighMembers } from './weigh-members';

/** The protocols whose calls have messages and a limit for the answer. */
type AnsweringProtocol = Exclude<Protocol, 'embeddings'>;

interface Fields extends Pick<ModelRequest, 'modelRequested' | 'stream' | 'maxOutputTokens' | 'choices' | 'members'> {
  readonly weighed: WeighedMembers;
}

/** The longest model name. Usage records are found by it, and Postgres limits the size of an index entry. */
const LONGEST_MODEL_NAME = 256;
/** The most bytes of a tool whose rule depends on its form. Tools that run at the vendor are described in a few words. */
const LONGEST_FORMED_TOOL = 65_536;

interface Rules {
  /** The lowest limit that a call may name. A Messages call with limit 0 only fills the vendor's cache. */
  readonly leastLimit: 0 | 1;
  readonly needsLimit: boolean;
  readonly maxTemperature: number;
  readonly hasChoices: boolean;
  /** The first bytes that a conversation may have, and the members that may replace it. */
  readonly conversation: { readonly firstBytes: readonly number[]; readonly expected: string };
  readonly insteadOfIt: readonly string[];
  /** The first bytes and the kinds of other members. */
  readonly kinds: readonly (readonly [name: string, firstBytes: readonly number[], expected: string])[];
}

const LIST = { firstBytes: [OPEN_BRACKET], expected: 'an array' };
const TEXT_OR_LIST = { firstBytes: [QUOTE, OPEN_BRACKET], expected: 'a string or an array' };

const RULES: Readonly<Record<AnsweringProtocol, Rules>> = {
  messages: {
    leastLimit: 0,
    needsLimit: true,
    maxTemperature: 1,
    hasChoices: false,
    conversation: LIST,
    insteadOfIt: [],
    kinds: [['system', TEXT_OR_LIST.firstBytes, TEXT_OR_LIST.expected]],
  },
  chat: {
    leastLimit: 1,
    needsLimit: false,
    maxTemperature: 2,
    hasChoices: true,
    conversation: LIST,
    insteadOfIt: [],
    kinds: [
      ['system', TEXT_OR_LIST.firstBytes, TEXT_OR_LIST.expected],
      ['stream_options', [OPEN_BRACE], 'an object'],
    ],
  },
  responses: {
    leastLimit: 1,
    needsLimit: false,
    maxTemperature: 2,
    hasChoices: false,
    conversation: TEXT_OR_LIST,
    insteadOfIt: ['previous_response_id', 'conversation', 'prompt'],
    kinds: [['instructions', [QUOTE], 'a string']],
  },
};

/** Checks the members of a JSON body and decides what each means for the cost. See docs/contract.md, section 4.1. */
export function checkFields(
  protocol: Protocol,
  observer: CallObserver,
  chunks: readonly Buffer[],
  settings: MemberSettings,
): Fields {
  if (!observer.members.isObject) throw fail('INVALID_JSON', { message: 'The body must be a JSON object.' });
  if (observer.members.repeated !== undefined)
    throw invalid(observer.members.repeated, 'the body contains this member more than once');
  const body = new Members(protocol, observer.members.places, chunks);

  const modelRequested = body.model();
  const stream = body.boolean('stream') ?? false;
  const weigh = () => weighMembers(protocol, observer.members.places.keys(), body.texts, observer.repeated, settings);
  if (protocol === 'embeddings') {
    checkInput(observer, stream);
    return { modelRequested, stream, maxOutputTokens: 0, choices: 1, members: body.texts, weighed: weigh() };
  }
  const { conversation, limits } = PROTOCOLS[protocol];
  const rules = RULES[protocol];
  const limit = body.count(limits[0], { least: rules.leastLimit });
  if (rules.needsLimit && limit === undefined) throw invalid(limits[0], 'is missing');
  const isNeeded = !rules.insteadOfIt.some((name) => observer.members.places.has(name));
  body.mustBegin(conversation, rules.conversation.firstBytes, rules.conversation.expected, isNeeded);
  decideForms(observer, chunks);
  checkOpenTools(observer, chunks);
  if (observer.fault !== undefined) throw observer.fault;
  body.temperature(rules.maxTemperature);
  body.mustBegin('tools', [OPEN_BRACKET], 'an array');
  for (const [name, firstBytes, expected] of rules.kinds) body.mustBegin(name, firstBytes, expected);
  const weighed = weigh();
  const others = limits.slice(1).map((name) => body.count(name));
  const choices = rules.hasChoices ? body.count('n', { most: MOST_CHOICES }) : undefined;
  limitTools(protocol, observer, body);
  return {
    modelRequested,
    stream,
    maxOutputTokens: others.reduce(larger, limit),
    choices: choices ?? 1,
    members: body.texts,
    weighed,
  };
}

function checkInput({ inputs, members }: CallObserver, stream: boolean): void {
  if (stream) throw invalid('stream', 'expected false or nothing: embeddings are not streamed');
  if (!members.places.has('input')) throw invalid('input', 'is missing');
  if (inputs?.fault !== undefined) throw inputs.fault;
}

/** Returns the larger of two limits, because upstreams differ in which of the two they read. */
function larger(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

/** Decides the rule of each tool for which the type alone does not decide. */
function decideForms(observer: CallObserver, chunks: readonly Buffer[]): void {
  for (const place of observer.formedTools) {
    const { index } = place;
    const text = textOfTool(place, chunks);
    // Any key may stand in `parameters`, because the schema of a client's tool has keys such as `additionalProperties`.
    if (text === undefined || hasDoubtfulKeys(text, 'parameters'))
      throw invalid(`tools[${index}]`, 'has a form that the gateway does not know');
    observer.decideForm(place, JSON.parse(text) as Readonly<Record<string, unknown>>);
  }
}

/** Refuses tools that could read what the vendor keeps for another account. */
function checkOpenTools({ openTools }: CallObserver, chunks: readonly Buffer[]): void {
  for (const place of openTools) {
    const text = textOfTool(place, chunks);
    if (text !== undefined && !namesKept(text)) continue;
    throw notSupported(
      `tools[${place.index}]`,
      'The tool may name an object at the vendor that belongs to no account.',
    );
  }
}

/** Returns the text of a tool; undefined if it is too long. */
function textOfTool({ from, to }: ItemPlace, chunks: readonly Buffer[]): string | undefined {
  return to - from > LONGEST_FORMED_TOOL ? undefined : sliceChunks(chunks, from, to).toString();
}

/** Gives the tools that share one limit the limit of the body, or the place where the gateway can write it. */
function limitTools(protocol: Protocol, observer: CallObserver, body: Members): void {
  const { toolLimit } = DIALECTS[protocol];
  if (toolLimit === undefined) return;
  const pieces = body.count(toolLimit, { least: 0, most: MOST_USES });
  const place = body.placeFor(toolLimit);
  const places = pieces === undefined ? { insert: place } : { insert: undefined, own: place };
  observer.toolUses = observer.toolUses?.map((tool) =>
    tool.limit === undefined ? tool : { ...tool, pieces, limit: { ...tool.limit, ...places } },
  );
}

function invalid(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}

/** The top-level members of a body, with the text of the short values. */
class Members {
  /** Raw JSON text of the short values. */
  readonly texts = new Map<string, string>();

  constructor(
    private readonly protocol: Protocol,
    private readonly places: ReadonlyMap<string, MemberPlace>,
    private readonly chunks: readonly Buffer[],
  ) {
    for (const [key, place] of places) {
      const meant = lookalikeOf(key);
      if (meant !== undefined) throw invalid(shorten(key), `did you mean "${meant}"?`);
      if (place.end - place.valueStart > MAX_TOKEN_TEXT_BYTES) continue;
      this.texts.set(key, textOfChunks(chunks, place.valueStart, place.end));
    }
  }

  model(): string {
    const model = this.#value('model');
    if (model === undefined) throw invalid('model', this.places.has('model') ? 'is too long' : 'is missing');
    if (typeof model !== 'string' || model === '') throw invalid('model', 'expected a non-empty string');
    if (model.length > LONGEST_MODEL_NAME) throw invalid('model', `expected at most ${LONGEST_MODEL_NAME} characters`);
    // The name goes into the usage record, and Postgres rejects NUL characters and lone surrogates.
    if (/\p{Cc}|\p{Cs}/u.test(model)) throw invalid('model', 'expected no control characters');
    return model;
  }

  boolean(name: string): boolean | undefined {
    const value = this.#optional(name);
    if (value !== undefined && typeof value !== 'boolean') throw invalid(name, 'expected true or false');
    return value;
  }

  count(name: string, { least = 1, most = Number.MAX_SAFE_INTEGER } = {}): number | undefined {
    const value = this.#optional(name);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    throw invalid(
      name,
      most < Number.MAX_SAFE_INTEGER
        ? `expected an integer from ${least} to ${most}`
        : `expected an integer ≥ ${least}`,
    );
  }

  temperature(most: number): void {
    const value = this.#optional('temperature');
    if (value === undefined || (typeof value === 'number' && value >= 0 && value <= most)) return;
    throw invalid('temperature', `expected a number from 0 to ${most}`);
  }

  /** Checks the kind of a value by its first byte, because the value may be 20 MB long. */
  mustBegin(name: string, firstBytes: readonly number[], expected: string, isRequired = false): void {
    const place = this.places.get(name);
    if (place === undefined) {
      if (isRequired) throw invalid(name, 'is missing');
      return;
    }
    const firstByte = textOfChunks(this.chunks, place.valueStart, place.valueStart + 1).charCodeAt(0);
    if (firstBytes.includes(firstByte) || (!isRequired && this.#isAbsent(name))) {
      if (firstByte === OPEN_BRACE && !this.texts.has(name)) throw invalid(name, 'is too long');
      return;
    }
    throw invalid(name, `expected ${expected}`);
  }

  /** Returns where the gateway writes a number that the body lacks: over its `null`, or as the first member. */
  placeFor(name: string): LimitPlace {
    const place = this.places.get(name);
    if (place !== undefined) return { from: place.valueStart, to: place.end, name: undefined };
    const [first = 0] = [...this.places.values()].map(({ start }) => start);
    return { from: first, to: first, name };
  }

  /** Returns an optional value; undefined if it is absent. A value that is too long is as invalid as one of the wrong kind. */
  #optional(name: string): unknown {
    if (!this.places.has(name) || this.#isAbsent(name)) return undefined;
    const value = this.#value(name);
    return value === undefined ? NOT_READ : value;
  }

  /** True if a member is absent. In the protocols of the Chat vendor `null` also counts as absent. */
  #isAbsent(name: string): boolean {
    return this.protocol !== 'messages' && this.texts.get(name) === 'null';
  }

  #value(name: string): unknown {
    const text = this.texts.get(name);
    return text === undefined ? undefined : JSON.parse(text);
  }
}

const NOT_READ = Symbol('a value of more than 4 KiB');

function shorten(key: string): string {
  return key.length > 100 ? `${key.slice(0, 100)}…` : key;
}
