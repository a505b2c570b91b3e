import { fail, invalidParam, shorten } from '../../core/base/errors';
import type { ModelRequest } from '../../core/calls/call';
import { forEachProtocol, hasOutput, PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { type MemberPlace, sliceChunks, textOfChunks } from '../../core/http/json-members';
import { MAX_TOKEN_TEXT_BYTES } from '../../core/http/json-scanner';
import type { LimitPlace } from '../../core/protocols/cost-factors';
import type { Kind, MemberRow } from '../../core/protocols/request-table';
import { memberRow, REQUEST_TABLES } from '../../core/protocols/request-tables';
import type { CallObserver, ItemPosition } from './observe-call';
import { lookalikeOf, notSupported } from './refusals';
import { hasDoubtfulKeys, namesKept } from './short-texts';
import { type ClassifiedMembers, type MemberSettings, weighMembers } from './weigh-members';

export interface CheckedFields
  extends Pick<ModelRequest, 'modelRequested' | 'stream' | 'maxOutputTokens' | 'choices' | 'members'> {
  readonly weighed: ClassifiedMembers;
}

/** The length limit of a model name. Usage records have an index on it, and Postgres limits the size of an index entry. */
const MAX_MODEL_NAME_LENGTH = 256;
/** The size limit of a tool whose cost rule depends on its content, in bytes. Tools that run at the vendor have short descriptions. */
const MAX_FORMED_TOOL_LENGTH = 65_536;
/** How many characters of a member's name an error shows. */
const MAX_PARAM_LENGTH = 100;

/** The members of each protocol whose values are checked, in the order in which the protocol's request table lists them. */
const CHECKED = forEachProtocol((protocol) =>
  Object.entries(REQUEST_TABLES[protocol].members).filter(
    ([, { is, isRequired }]) => is !== undefined || isRequired === true,
  ),
);

/** Checks the members of a JSON body and decides what each means for the cost. See docs/contract.md, section 4.1. */
export function checkFields(
  protocol: Protocol,
  observer: CallObserver,
  chunks: readonly Buffer[],
  settings: MemberSettings,
): CheckedFields {
  const { places, isObject, repeated } = observer.members;
  if (!isObject) throw fail('INVALID_JSON', { message: 'The body must be a JSON object.' });
  if (repeated !== undefined) throw invalidParam(repeated, 'the body contains this member more than once');
  const body = new Members(protocol, places, chunks);

  const modelRequested = body.model();
  for (const [name, row] of CHECKED[protocol]) body.check(name, row);
  decideForms(observer, chunks);
  checkOpenTools(observer, chunks);
  const fault = observer.fault ?? observer.inputs?.fault;
  if (fault !== undefined) throw fault;
  const weighed = weighMembers(protocol, places.keys(), body.texts, observer.repeated, settings);
  limitTools(protocol, observer, body);
  // Upstreams differ in which of two output limits they obey, so the larger limit counts.
  let maxOutputTokens = hasOutput(protocol) ? undefined : 0;
  for (const name of PROTOCOLS[protocol].limits) {
    const limit = body.number(name);
    if (limit !== undefined) maxOutputTokens = Math.max(limit, maxOutputTokens ?? 0);
  }
  return {
    modelRequested,
    stream: body.value('stream') === true,
    maxOutputTokens,
    choices: (memberRow(REQUEST_TABLES[protocol], 'n') && body.number('n')) ?? 1,
    members: body.texts,
    weighed,
  };
}

/** Decides the cost rule of each tool whose type alone does not decide it. */
function decideForms(observer: CallObserver, chunks: readonly Buffer[]): void {
  for (const place of observer.formedTools) {
    const { index } = place;
    const text = textOfTool(place, chunks);
    // Keys inside `parameters` are unrestricted, because the schema of a client's tool has keys such as `additionalProperties`.
    if (text === undefined || hasDoubtfulKeys(text, 'parameters'))
      throw invalidParam(`tools[${index}]`, 'has a form that the gateway does not know');
    observer.decideForm(place, JSON.parse(text) as Readonly<Record<string, unknown>>);
  }
}

/** Rejects tools that could read what the vendor keeps for another account. */
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
function textOfTool({ from, to }: ItemPosition, chunks: readonly Buffer[]): string | undefined {
  return to - from > MAX_FORMED_TOOL_LENGTH ? undefined : sliceChunks(chunks, from, to).toString();
}

/** Sets the limit of the tools that share one use limit. It is the limit in the body, or the position in the body at which the gateway can write a limit. */
function limitTools(protocol: Protocol, observer: CallObserver, body: Members): void {
  const { toolLimit } = REQUEST_TABLES[protocol];
  if (toolLimit === undefined) return;
  const pieces = body.number(toolLimit);
  const place = body.placeFor(toolLimit);
  const places = pieces === undefined ? { insert: place } : { insert: undefined, own: place };
  observer.toolUses = observer.toolUses?.map((tool) =>
    tool.limit === undefined ? tool : { ...tool, pieces, limit: { ...tool.limit, ...places } },
  );
}

/** The top-level members of a body, with the JSON text of the short values. */
class Members {
  /** The raw JSON text of the short values, by member name. */
  readonly texts = new Map<string, string>();

  constructor(
    private readonly protocol: Protocol,
    private readonly places: ReadonlyMap<string, MemberPlace>,
    private readonly chunks: readonly Buffer[],
  ) {
    for (const [key, place] of places) {
      const meant = lookalikeOf(key);
      if (meant !== undefined) throw invalidParam(shorten(key, MAX_PARAM_LENGTH), `did you mean "${meant}"?`);
      if (place.end - place.valueStart > MAX_TOKEN_TEXT_BYTES) continue;
      this.texts.set(key, textOfChunks(chunks, place.valueStart, place.end));
    }
  }

  model(): string {
    const model = this.#value('model');
    if (model === undefined) throw invalidParam('model', this.places.has('model') ? 'is too long' : 'is missing');
    if (typeof model !== 'string' || model === '') throw invalidParam('model', 'expected a non-empty string');
    if (model.length > MAX_MODEL_NAME_LENGTH)
      throw invalidParam('model', `expected at most ${MAX_MODEL_NAME_LENGTH} characters`);
    // The usage record contains the model name, and Postgres rejects NUL characters and lone surrogates.
    if (/\p{Cc}|\p{Cs}/u.test(model)) throw invalidParam('model', 'expected no control characters');
    return model;
  }

  /** Checks that a required member is present, and that its value is of the expected kind. */
  check(name: string, { is, isRequired = false, replacedBy = [] }: MemberRow): void {
    const place = this.places.get(name);
    if (place === undefined && !isRequired) return;
    const isNeeded = isRequired && !replacedBy.some((other) => this.places.has(other));
    if (place === undefined) {
      if (isNeeded) throw invalidParam(name, 'is missing');
    } else if (is !== undefined && (isNeeded || !this.#isAbsent(name))) {
      if (!this.#isOf(is, name, place)) throw invalidParam(name, `expected ${is.expected}`);
    }
  }

  /** Returns whether a member's value is of the expected kind. A list or a text may be 20 MB long, so only its first byte is read. */
  #isOf(kind: Kind, name: string, { valueStart }: MemberPlace): boolean {
    if ('begins' in kind) return kind.begins.includes(textOfChunks(this.chunks, valueStart, valueStart + 1));
    if (!this.texts.has(name)) throw invalidParam(name, 'is too long');
    return kind.accepts(this.#value(name));
  }

  /** Returns the value of a member whose kind has been checked; undefined if the member is absent. */
  value(name: string): unknown {
    return this.#isAbsent(name) ? undefined : this.#value(name);
  }

  number(name: string): number | undefined {
    return this.value(name) as number | undefined;
  }

  /** Returns the position at which the gateway writes a missing number into the body: in place of the member's `null`, or as the first member. */
  placeFor(name: string): LimitPlace {
    const place = this.places.get(name);
    if (place !== undefined) return { from: place.valueStart, to: place.end, name: undefined };
    const [first = 0] = [...this.places.values()].map(({ start }) => start);
    return { from: first, to: first, name };
  }

  #isAbsent(name: string): boolean {
    return REQUEST_TABLES[this.protocol].nullIsAbsent && this.texts.get(name) === 'null';
  }

  #value(name: string): unknown {
    const text = this.texts.get(name);
    return text === undefined ? undefined : JSON.parse(text);
  }
}
