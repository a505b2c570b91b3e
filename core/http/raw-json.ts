import { asObject, type JsonObject } from '../base/json-values';
import { type JsonObserver, type JsonToken, scanWhole } from './json-scanner';
import { wordIn } from './json-words';

/**
 * A tool's inputs and a request's schemas belong to the client. Parsing and printing them would change them: numbers of 17 digits, names
 * that are digits. These objects therefore keep their original JSON text, which the gateway forwards. The value is undefined if an object
 * in the text repeats a name. Parsers disagree about such a text, so it is never put into other JSON.
 */
const TEXTS = new WeakMap<object, string | undefined>();

/** Names of members whose object belongs to the client or the model. */
const FOREIGN: ReadonlySet<unknown> = new Set(['input', 'arguments', 'args', 'input_schema', 'parameters', 'schema']);

/** Returns the original JSON text from which an object was parsed; undefined if the process does not keep that text. */
export function rawTextOf(object: object): string | undefined {
  return TEXTS.get(object);
}

export function repeatsName(object: object): boolean {
  return TEXTS.has(object) && TEXTS.get(object) === undefined;
}

/** Returns a value as JSON. Objects with a kept text are written as that text, unchanged. */
export function jsonOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const text = TEXTS.get(value);
  if (text !== undefined) return text;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join()}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonOf(member)}`).join()}}`;
}

/** Returns a copy of an object with one more member. If the copy is written as JSON, this member comes first. */
export function withMember(object: JsonObject, name: string, value: unknown): JsonObject {
  const added = { [name]: value, ...object };
  const rest = jsonOf(object).slice(1).trimStart();
  TEXTS.set(added, `{${JSON.stringify(name)}:${jsonOf(value)}${rest === '}' ? '' : ','}${rest}`);
  return added;
}

/**
 * Parses JSON; returns undefined if it is invalid. Objects in `FOREIGN` members (the client's or the model's) keep their JSON text. If
 * `isForeign` is true, the whole value keeps its text.
 */
export function parseRaw(bytes: Buffer, isForeign = false): unknown {
  let root: unknown;
  try {
    root = JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
  return scanWhole([bytes], new ForeignTexts(bytes, root, isForeign)) ? root : undefined;
}

/** Parses the JSON of exactly one object and keeps its text. Returns undefined if an object in it repeats a name, and for any other text. */
export function parseForeign(text: string): JsonObject | undefined {
  const object = asObject(parseRaw(Buffer.from(text), true));
  return object === undefined || repeatsName(object) ? undefined : object;
}

/**
 * Keeps the JSON texts of objects that belong to the client or the model, while a scanner reads the text of an already parsed value. If a
 * name is repeated in the text, the parsed value has only the last member. Earlier members' texts are not kept: they match no part of the
 * value, or the last member's text overwrites them.
 */
export class ForeignTexts implements JsonObserver {
  /** For each depth: the container that is being scanned, the offsets of its last key, and the index of its last item. */
  readonly #containers: (object | undefined)[] = [];
  readonly #keyStarts: number[] = [];
  readonly #keyEnds: number[] = [];
  readonly #indexes: number[] = [];
  /** The depth of the open object that belongs to the client or the model (0 if none), its start offset, and how many names it contains. */
  #foreign = 0;
  #start = 0;
  #names = 0;

  /** @param root the outermost container; its members may still be added while the scanner reads */
  constructor(
    private readonly bytes: Buffer,
    private readonly root: unknown,
    private readonly isForeign = false,
  ) {}

  open(depth: number, isObject: boolean, { start }: JsonToken): void {
    if (this.#foreign !== 0) return;
    const around = this.#containers[depth - 1];
    const name = Array.isArray(around) ? this.#nextIndex(depth - 1) : this.#nameAt(depth - 1, around);
    const value = depth === 1 ? this.root : name === undefined ? undefined : childOf(around, name);
    this.#containers[depth] = isContainer(value, isObject) ? value : undefined;
    this.#indexes[depth] = -1;
    if (!isObject || !(depth === 1 ? this.isForeign : FOREIGN.has(name))) return;
    this.#foreign = depth;
    this.#start = start;
    this.#names = 0;
  }

  close(depth: number, { end }: JsonToken): void {
    if (this.#foreign !== depth) return;
    this.#foreign = 0;
    const object = this.#containers[depth];
    if (object === undefined) return;
    const repeats = this.#names !== namesIn(object);
    TEXTS.set(object, repeats ? undefined : this.bytes.toString('utf8', this.#start, end));
  }

  key(depth: number, { start, end }: JsonToken): void {
    if (this.#foreign !== 0) {
      this.#names += 1;
      return;
    }
    this.#keyStarts[depth] = start;
    this.#keyEnds[depth] = end;
  }

  scalar(depth: number): void {
    if (this.#foreign === 0) this.#nextIndex(depth);
  }

  #nextIndex(depth: number): number {
    const index = (this.#indexes[depth] ?? -1) + 1;
    this.#indexes[depth] = index;
    return index;
  }

  /** Returns the name of the member that is being scanned; undefined if the parsed value lacks the object around that member. */
  #nameAt(depth: number, around: object | undefined): string | undefined {
    if (around === undefined) return undefined;
    const start = this.#keyStarts[depth] as number;
    const end = this.#keyEnds[depth] as number;
    const { text } = wordIn(this.bytes, start + 1, end - 1);
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
  }
}

function childOf(around: object | undefined, name: string | number): unknown {
  return around !== undefined && Object.hasOwn(around, name)
    ? (around as Readonly<Record<string | number, unknown>>)[name]
    : undefined;
}

function isContainer(value: unknown, isObject: boolean): value is object {
  return typeof value === 'object' && value !== null && Array.isArray(value) !== isObject;
}

/** Counts the names of all objects in a parsed value. If the JSON text had more names than the value, the text repeated a name. */
function namesIn(value: object): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) count += namesIn(item);
    return count;
  }
  for (const name in value) {
    const member = (value as JsonObject)[name];
    count += typeof member === 'object' && member !== null ? 1 + namesIn(member) : 1;
  }
  return count;
}
