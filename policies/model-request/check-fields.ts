import type { ModelRequest } from '../../core/calls/call';
import { MOST_CHOICES } from '../../core/catalog/price';
import type { Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError } from '../../core/errors';
import { MAX_TOKEN_TEXT_BYTES, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../core/http/json-scanner';
import type { MemberPlace } from '../../core/wire/json-members';
import { textOfChunks } from '../../core/wire/json-members';
import { lookalikeOf } from './fields';
import type { CallObserver } from './observe-call';
import { type MemberSettings, type WeighedMembers, weighMembers } from './weigh-members';

/** The protocols whose calls have messages and a limit of the answer. */
type AnsweringProtocol = Exclude<Protocol, 'embeddings'>;

interface Fields extends Pick<ModelRequest, 'modelRequested' | 'stream' | 'maxOutputTokens' | 'choices' | 'members'> {
  readonly weighed: WeighedMembers;
}

/** Usage records are found by it: a longer one has no place in an index. */
const LONGEST_MODEL_NAME = 256;
/** A Messages call without any output fills the vendor's cache. */
const LEAST_LIMIT: Readonly<Record<AnsweringProtocol, number>> = { messages: 0, chat: 1 };
const MAX_TEMPERATURE: Readonly<Record<AnsweringProtocol, number>> = { messages: 1, chat: 2 };

/** Checks the members of a body that is JSON, and decides what each means for the cost. See docs/contract.md, section 4.1. */
export function checkFields(
  protocol: Protocol,
  observer: CallObserver,
  chunks: readonly Buffer[],
  settings: MemberSettings,
): Fields {
  if (!observer.members.isObject) throw fail('INVALID_JSON', { message: 'The body must be a JSON object.' });
  if (observer.members.repeated !== undefined) throw invalid(observer.members.repeated, 'stands in the body twice');
  const body = new Members(protocol, observer.members.places, chunks);

  const modelRequested = body.model();
  const stream = body.boolean('stream') ?? false;
  const weigh = () => weighMembers(protocol, observer.members.places.keys(), body.texts, observer.repeated, settings);
  if (protocol === 'embeddings') {
    checkInput(observer, stream);
    return { modelRequested, stream, maxOutputTokens: 0, choices: 1, members: body.texts, weighed: weigh() };
  }
  const limit = body.count('max_tokens', { least: LEAST_LIMIT[protocol] });
  if (protocol === 'messages' && limit === undefined) throw invalid('max_tokens', 'is missing');
  body.mustBegin('messages', [OPEN_BRACKET], 'an array', true);
  if (observer.fault !== undefined) throw observer.fault;
  body.temperature(MAX_TEMPERATURE[protocol]);
  body.mustBegin('tools', [OPEN_BRACKET], 'an array');
  body.mustBegin('system', [QUOTE, OPEN_BRACKET], 'a string or an array');
  if (protocol === 'chat') body.mustBegin('stream_options', [OPEN_BRACE], 'an object');
  const weighed = weigh();
  const completionLimit = protocol === 'chat' ? body.count('max_completion_tokens') : undefined;
  const choices = protocol === 'chat' ? body.count('n', { most: MOST_CHOICES }) : undefined;
  return {
    modelRequested,
    stream,
    maxOutputTokens: larger(limit, completionLimit),
    choices: choices ?? 1,
    members: body.texts,
    weighed,
  };
}

function checkInput({ inputs, members }: CallObserver, stream: boolean): void {
  if (stream) throw invalid('stream', 'embeddings are not streamed');
  if (!members.places.has('input')) throw invalid('input', 'is missing');
  if (inputs?.fault !== undefined) throw inputs.fault;
}

/** Upstreams differ in which of two limits they read. */
function larger(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

function invalid(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}

/** The top-level members of a body, their short values as text. */
class Members {
  /** Raw JSON text of the short values. */
  readonly texts = new Map<string, string>();

  readonly #protocol: Protocol;
  readonly #places: ReadonlyMap<string, MemberPlace>;
  readonly #chunks: readonly Buffer[];

  constructor(protocol: Protocol, places: ReadonlyMap<string, MemberPlace>, chunks: readonly Buffer[]) {
    this.#protocol = protocol;
    this.#places = places;
    this.#chunks = chunks;
    for (const [key, place] of places) {
      const meant = lookalikeOf(key);
      if (meant !== undefined) throw invalid(shorten(key), `did you mean "${meant}"?`);
      if (place.end - place.valueStart > MAX_TOKEN_TEXT_BYTES) continue;
      this.texts.set(key, textOfChunks(chunks, place.valueStart, place.end));
    }
  }

  model(): string {
    const model = this.#value('model');
    if (model === undefined) throw invalid('model', this.#places.has('model') ? 'is too long' : 'is missing');
    if (typeof model !== 'string' || model === '') throw invalid('model', 'expected a string that is not empty');
    if (model.length > LONGEST_MODEL_NAME) throw invalid('model', `expected at most ${LONGEST_MODEL_NAME} characters`);
    // It goes into the usage record, and Postgres takes neither a NUL nor half a character.
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

  /** Checks the kind of a value by its first byte: it may be 20 MB long. */
  mustBegin(name: string, firstBytes: readonly number[], expected: string, isRequired = false): void {
    const place = this.#places.get(name);
    if (place === undefined) {
      if (isRequired) throw invalid(name, 'is missing');
      return;
    }
    const firstByte = textOfChunks(this.#chunks, place.valueStart, place.valueStart + 1).charCodeAt(0);
    if (firstBytes.includes(firstByte) || (!isRequired && this.#isAbsent(name))) {
      if (firstByte === OPEN_BRACE && !this.texts.has(name)) throw invalid(name, 'is too long');
      return;
    }
    throw invalid(name, `expected ${expected}`);
  }

  /** A value that may be left out; too long a one is as wrong as one of another kind. */
  #optional(name: string): unknown {
    if (!this.#places.has(name) || this.#isAbsent(name)) return undefined;
    const value = this.#value(name);
    return value === undefined ? NOT_READ : value;
  }

  /** In the protocols of the Chat vendor `null` says the same as nothing. */
  #isAbsent(name: string): boolean {
    return this.#protocol !== 'messages' && this.texts.get(name) === 'null';
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
