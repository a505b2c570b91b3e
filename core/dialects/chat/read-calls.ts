import type { AnswerEvent } from '../../catalog/answer';
import { asCount, asObject, asText, type JsonObject } from '../../json-values';
import { parseJson } from '../../parse-json';

interface Call {
  id: string;
  name: string;
  isText: boolean;
  /** The input received so far. */
  input: string;
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
  /** The newest call of each `index`. */
  readonly #byIndex = new Map<number, Call>();

  constructor(choice: number, answerId: string, next: () => number) {
    this.#choice = choice;
    this.#answerId = answerId;
    this.#next = next;
  }

  get hasCalls(): boolean {
    return this.#calls.some(({ at }) => at !== undefined);
  }

  /** Returns the answer events of one item of `tool_calls`. */
  say(given: JsonObject): readonly AnswerEvent[] {
    const custom = asObject(given['custom']);
    const called = custom ?? asObject(given['function']) ?? {};
    const name = asText(called['name']);
    const input = textOf(custom === undefined ? called['arguments'] : called['input']);
    const call = this.#callOf(given, name, input);
    if (call === undefined) return [];
    call.id ||= asText(given['id']);
    call.name ||= name;
    call.isText ||= custom !== undefined || given['type'] === 'custom';
    return [...this.#open(call), ...this.#add(call, input)];
  }

  /** Throws if a call has no name when the stop reason arrives. */
  checkNames(): void {
    if (this.#calls.some(({ name, input }) => name === '' && input.trim() !== ''))
      throw new Error('a tool call has no name');
  }

  /** Closes all open calls. A call without a name was cut off, so it produces no event. */
  close(): readonly AnswerEvent[] {
    return this.#calls.flatMap((call) => this.#close(call));
  }

  /** Returns the call that an item belongs to. Some upstreams send no `index`, or the same one for every call; the id then distinguishes them. */
  #callOf(given: JsonObject, name: string, input: string): Call | undefined {
    const id = asText(given['id']);
    const index = asCount(given['index']);
    const known = index === undefined ? this.#withId(id) : this.#byIndex.get(index);
    if (known !== undefined && !isAnother(known, id, name, input)) return known;
    if (id === '' && name === '' && index === undefined) {
      if (input.trim() === '') return undefined;
      throw new Error('the input of a tool call came without its call');
    }
    const call: Call = { id, name: '', isText: false, input: '', at: undefined, isClosed: false };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #withId(id: string): Call | undefined {
    return id === '' ? this.#calls.at(-1) : this.#calls.findLast((call) => call.id === id);
  }

  /** Opens a call whose name has arrived. First closes the other calls whose input is complete. */
  #open(call: Call): readonly AnswerEvent[] {
    if (call.at !== undefined || call.name === '') return [];
    const whole = this.#calls
      .filter((other) => other !== call && isWhole(other))
      .flatMap((other) => this.#close(other));
    call.at = this.#next();
    call.id ||= this.#madeId(call);
    const { id, name, isText } = call;
    const part = { is: 'tool_call', id, name, ...(isText && { isText }) } as const;
    const opened: AnswerEvent = { is: 'open', at: call.at, choice: this.#choice, part };
    return call.input === '' ? [...whole, opened] : [...whole, opened, { is: 'add', at: call.at, text: call.input }];
  }

  #add(call: Call, text: string): readonly AnswerEvent[] {
    if (text === '') return [];
    if (call.isClosed) {
      if (text.trim() === '') return [];
      throw new Error('the input of a tool call goes on behind its end');
    }
    call.input += text;
    return call.at === undefined ? [] : [{ is: 'add', at: call.at, text }];
  }

  #close(call: Call): readonly AnswerEvent[] {
    if (call.at === undefined || call.isClosed) return [];
    call.isClosed = true;
    return [{ is: 'close', at: call.at }];
  }

  /**
   * Returns an id for a call without one. It is unique across answers, because clients return it with the result in conversations
   * that have many answers.
   */
  #madeId(call: Call): string {
    const answer = this.#answerId.replace(/[^a-zA-Z0-9_-]/g, '');
    return ['call', answer, this.#choice, this.#calls.indexOf(call)].filter((each) => each !== '').join('_');
  }
}

/** Whether an item with the number of a known call begins another call. Some upstreams repeat id and name in every chunk. */
function isAnother(known: Call, id: string, name: string, input: string): boolean {
  if (name === '' || known.name === '') return false;
  if (id !== '' && known.id !== '') return id !== known.id;
  return name !== known.name || (input.trim() !== '' && isWhole(known));
}

/** Returns the input as text. Some upstreams send it as an object instead. */
function textOf(input: unknown): string {
  return asObject(input) === undefined ? asText(input) : JSON.stringify(input);
}

/** Whether a call's input is complete: nothing can follow the JSON of an object. Free text has no visible end. */
function isWhole({ at, isText, isClosed, input }: Call): boolean {
  return at !== undefined && !isText && !isClosed && asObject(parseJson(input)) !== undefined;
}
