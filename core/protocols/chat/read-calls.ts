import { asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent } from '../../catalog/answer';
import { type JsonObserver, JsonScanner } from '../../http/json-scanner';
import { jsonOf } from '../../http/raw-json';
import type { KeptReasoning } from './kept-reasoning';

interface Call {
  /** The position of the tool call among the calls of its choice. */
  readonly order: number;
  id: string;
  name: string;
  isText: boolean;
  /** What the vendor wants returned with this tool call in the next request. */
  extra?: KeptReasoning['extra_content'];
  /** The part of the tool call's input that arrived before the call's name. */
  early: string;
  /** Detects whether the input of a tool call is complete. Free text has no detectable end. */
  readonly end: ObjectEnd;
  /** The number of the tool call's part in the answer; undefined until the call's name has arrived. */
  at: number | undefined;
  isClosed: boolean;
}

/**
 * Reads the tool calls of one choice, which may arrive interleaved. It closes a call as soon as another call begins and the first call's
 * JSON is complete. A writer whose dialect has only sequential parts can then send the other call to the client.
 */
export class CallsReader {
  readonly #choice: number;
  readonly #answerId: string;
  readonly #next: () => number;
  readonly #calls: Call[] = [];
  /** The newest tool call for each `index`. The next field has the newest tool call for each id. */
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  /** The open tool calls whose input is complete. They close when another call begins. */
  readonly #whole = new Set<Call>();
  hasCalls = false;

  constructor(
    choice: number,
    answerId: string,
    private readonly isNative: boolean,
    next: () => number,
  ) {
    this.#choice = choice;
    this.#answerId = answerId.slice(0, MAX_ID_LENGTH).replace(/[^a-zA-Z0-9_-]/g, '');
    this.#next = next;
  }

  /** Adds the answer events of one item of `tool_calls`. */
  say(given: JsonObject, events: AnswerEvent[]): void {
    const custom = asObject(given['custom']);
    const called = custom ?? asObject(given['function']) ?? {};
    const name = asText(called['name']);
    const input = textOf(custom === undefined ? called['arguments'] : called['input']);
    const call = this.#callOf(given, name, input);
    if (call === undefined) return;
    this.#identify(call, asText(given['id']));
    call.name ||= name;
    call.isText ||= custom !== undefined || given['type'] === 'custom';
    call.extra ??= asObject(given['extra_content']);
    if (call.name !== '' || (this.isNative && input !== '')) this.#open(call, events);
    this.#add(call, input, events);
    if (isWhole(call)) this.#whole.add(call);
    else this.#whole.delete(call);
  }

  /** Checks the names of tool calls. @throws if a tool call has input but no name when the stop reason arrives */
  checkNames(): void {
    if (this.#calls.some(({ name, early }) => name === '' && early.trim() !== ''))
      throw new Error("a tool call in the upstream's answer has no name");
  }

  /** Closes all open tool calls. Emits no event for a tool call without a name, because the end of the answer cut that call off. */
  close(events: AnswerEvent[]): void {
    for (const call of this.#calls) this.#close(call, events);
  }

  /**
   * Returns the tool call that an item of `tool_calls` belongs to. If upstreams send no `index`, or the same `index` for every call, the id
   * distinguishes the calls.
   */
  #callOf(given: JsonObject, name: string, input: string): Call | undefined {
    const id = asText(given['id']);
    const index = asCount(given['index']);
    const known = index !== undefined ? this.#byIndex.get(index) : id === '' ? this.#calls.at(-1) : this.#byId.get(id);
    if (known !== undefined && !isAnother(known, id, name, input)) return known;
    if (id === '' && name === '' && index === undefined && !this.isNative) {
      if (input.trim() === '') return undefined;
      throw new Error('the upstream sent the input of a tool call without the call');
    }
    const order = this.#calls.length;
    const end = new ObjectEnd();
    const call: Call = { order, id: '', name: '', isText: false, early: '', end, at: undefined, isClosed: false };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #identify(call: Call, id: string): void {
    if (call.id !== '' || id === '') return;
    call.id = id;
    if ((this.#byId.get(id)?.order ?? -1) < call.order) this.#byId.set(id, call);
  }

  /** Opens a tool call whose name has arrived. First closes the other tool calls whose input is complete. */
  #open(call: Call, events: AnswerEvent[]): void {
    if (call.at !== undefined) return;
    for (const other of this.#whole) this.#close(other, events);
    if (!this.isNative) this.#sign(call, events);
    call.at = this.#next();
    this.hasCalls = true;
    this.#identify(call, this.#madeId(call));
    const { at, id, name, isText, early } = call;
    call.early = '';
    const part = { kind: 'tool_call', id, name, ...(isText && { isText }) } as const;
    events.push({ kind: 'open', at, choice: this.#choice, part });
    if (early !== '') events.push({ kind: 'add', at, text: early });
  }

  /** Emits the `extra_content` of a tool call as the signature of an empty reasoning part before the call. Clients return signatures only with reasoning. */
  #sign({ extra }: Call, events: AnswerEvent[]): void {
    if (extra === undefined) return;
    const at = this.#next();
    const kept: KeptReasoning = { extra_content: extra };
    events.push({ kind: 'open', at, choice: this.#choice, part: { kind: 'reasoning' } });
    events.push({ kind: 'sign', at, value: JSON.stringify(kept) }, { kind: 'close', at });
  }

  #add(call: Call, text: string, events: AnswerEvent[]): void {
    if (text === '') return;
    if (call.isClosed && !this.isNative) {
      if (text.trim() === '') return;
      throw new Error('the upstream continued the input of a tool call after the input had ended');
    }
    if (!this.isNative) call.end.add(text);
    if (call.at === undefined) call.early += text;
    else events.push({ kind: 'add', at: call.at, text });
  }

  #close(call: Call, events: AnswerEvent[]): void {
    if (call.at === undefined || call.isClosed) return;
    call.isClosed = true;
    this.#whole.delete(call);
    events.push({ kind: 'close', at: call.at });
  }

  /**
   * Returns an id for a tool call that has none. The id is unique across answers, because a client's conversation contains calls and
   * results of many answers.
   */
  #madeId({ order }: Call): string {
    return ['call', this.#answerId, this.#choice, order].filter((each) => each !== '').join('_');
  }
}

/** The maximum number of characters of the answer's id in a generated tool call id. */
const MAX_ID_LENGTH = 64;

/**
 * Returns whether an item of `tool_calls` with the `index` of a known call begins another call. Some upstreams repeat id and name in every
 * chunk of one call.
 */
function isAnother(known: Call, id: string, name: string, input: string): boolean {
  if (name === '' || known.name === '') return false;
  if (id !== '' && known.id !== '') return id !== known.id;
  return name !== known.name || (input.trim() !== '' && isWhole(known));
}

/** Returns a tool call's input as text. Some upstreams send an object instead. */
function textOf(input: unknown): string {
  return asObject(input) === undefined ? asText(input) : jsonOf(input);
}

/** Returns whether an open tool call's input is complete. The input ends with its JSON object, because nothing can follow that object. */
function isWhole({ at, isText, isClosed, end }: Call): boolean {
  return at !== undefined && !isText && !isClosed && end.isWhole;
}

/** Follows JSON that arrives in pieces, and detects when its object is complete. */
class ObjectEnd implements JsonObserver {
  readonly #scanner = new JsonScanner(this);
  /** Whether the JSON is no object, or other text follows the object. */
  #isOther = false;
  #hasEnded = false;

  get isWhole(): boolean {
    return this.#hasEnded && !this.#isOther;
  }

  add(text: string): void {
    if (this.#isOther) return;
    try {
      this.#scanner.feed(Buffer.from(text));
    } catch {
      this.#isOther = true;
    }
  }

  open(depth: number, isObject: boolean): void {
    this.#isOther ||= depth === 1 && !isObject;
  }

  close(depth: number): void {
    this.#hasEnded = depth === 1;
  }

  key(): void {}

  scalar(): void {}
}
