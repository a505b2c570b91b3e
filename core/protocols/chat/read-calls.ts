import { asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent } from '../../catalog/answer';
import { type JsonObserver, JsonScanner } from '../../http/json-scanner';
import { jsonOf } from '../../http/raw-json';
import type { KeptReasoning } from './kept-reasoning';

interface Call {
  /** Its position among the calls of the choice. */
  readonly order: number;
  id: string;
  name: string;
  isText: boolean;
  /** What the vendor wants back with the call. */
  extra?: KeptReasoning['extra_content'];
  /** The input that arrived before the name. */
  early: string;
  /** Whether the input is complete. Free text has no visible end. */
  readonly end: ObjectEnd;
  /** The number of its part; undefined until its name has arrived. */
  at: number | undefined;
  isClosed: boolean;
}

/**
 * Reads the tool calls of one choice, which may arrive interleaved. It closes a call as soon as another begins and its JSON is
 * complete. A dialect whose parts must follow each other can then write it to the client.
 */
export class CallsReader {
  readonly #choice: number;
  readonly #answerId: string;
  readonly #next: () => number;
  readonly #calls: Call[] = [];
  /** The newest call of each `index`, and of each id. */
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  /** The open calls whose input is complete. */
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

  /** Throws if a call has no name when the stop reason arrives. */
  checkNames(): void {
    if (this.#calls.some(({ name, early }) => name === '' && early.trim() !== ''))
      throw new Error('a tool call has no name');
  }

  /** Closes all open calls. A call without a name was cut off, so it produces no event. */
  close(events: AnswerEvent[]): void {
    for (const call of this.#calls) this.#close(call, events);
  }

  /** Returns the call that an item belongs to. Some upstreams send no `index`, or the same one for every call; the id then distinguishes them. */
  #callOf(given: JsonObject, name: string, input: string): Call | undefined {
    const id = asText(given['id']);
    const index = asCount(given['index']);
    const known = index !== undefined ? this.#byIndex.get(index) : id === '' ? this.#calls.at(-1) : this.#byId.get(id);
    if (known !== undefined && !isAnother(known, id, name, input)) return known;
    if (id === '' && name === '' && index === undefined && !this.isNative) {
      if (input.trim() === '') return undefined;
      throw new Error('the input of a tool call came without its call');
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

  /** Opens a call whose name has arrived. First closes the other calls whose input is complete. */
  #open(call: Call, events: AnswerEvent[]): void {
    if (call.at !== undefined) return;
    for (const other of this.#whole) this.#close(other, events);
    if (!this.isNative) this.#sign(call, events);
    call.at = this.#next();
    this.hasCalls = true;
    this.#identify(call, this.#madeId(call));
    const { at, id, name, isText, early } = call;
    call.early = '';
    const part = { is: 'tool_call', id, name, ...(isText && { isText }) } as const;
    events.push({ is: 'open', at, choice: this.#choice, part });
    if (early !== '') events.push({ is: 'add', at, text: early });
  }

  /** Adds what goes back with a call as the signature of empty reasoning before it, because clients have a place for that alone. */
  #sign({ extra }: Call, events: AnswerEvent[]): void {
    if (extra === undefined) return;
    const at = this.#next();
    const kept: KeptReasoning = { extra_content: extra };
    events.push({ is: 'open', at, choice: this.#choice, part: { is: 'reasoning' } });
    events.push({ is: 'sign', at, value: JSON.stringify(kept) }, { is: 'close', at });
  }

  #add(call: Call, text: string, events: AnswerEvent[]): void {
    if (text === '') return;
    if (call.isClosed && !this.isNative) {
      if (text.trim() === '') return;
      throw new Error('the input of a tool call goes on behind its end');
    }
    if (!this.isNative) call.end.add(text);
    if (call.at === undefined) call.early += text;
    else events.push({ is: 'add', at: call.at, text });
  }

  #close(call: Call, events: AnswerEvent[]): void {
    if (call.at === undefined || call.isClosed) return;
    call.isClosed = true;
    this.#whole.delete(call);
    events.push({ is: 'close', at: call.at });
  }

  /**
   * Returns an id for a call without one. It is unique across answers, because clients return it with the result in conversations
   * that have many answers.
   */
  #madeId({ order }: Call): string {
    return ['call', this.#answerId, this.#choice, order].filter((each) => each !== '').join('_');
  }
}

/** How many characters of the answer's id are in a made id. */
const MAX_ID_LENGTH = 64;

/** Whether an item with the number of a known call begins another call. Some upstreams repeat id and name in every chunk. */
function isAnother(known: Call, id: string, name: string, input: string): boolean {
  if (name === '' || known.name === '') return false;
  if (id !== '' && known.id !== '') return id !== known.id;
  return name !== known.name || (input.trim() !== '' && isWhole(known));
}

/** Returns the input as text. Some upstreams send it as an object instead. */
function textOf(input: unknown): string {
  return asObject(input) === undefined ? asText(input) : jsonOf(input);
}

/** Whether an open call's input is complete: nothing can follow the JSON of an object. */
function isWhole({ at, isText, isClosed, end }: Call): boolean {
  return at !== undefined && !isText && !isClosed && end.isWhole;
}

/** Follows the JSON of an object that arrives in pieces, and knows when it is complete. */
class ObjectEnd implements JsonObserver {
  readonly #scanner = new JsonScanner(this);
  /** Whether it is no object, or text follows it. */
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
