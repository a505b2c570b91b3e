import { asObject, type JsonObject } from '../json-values';
import { type JsonObserver, type JsonToken, QUOTE, scanWhole } from './json-scanner';

/**
 * The inputs of tools and the schemas of a request belong to the client. Parsing and printing would change them: numbers of 17
 * digits, names that are digits. Their objects therefore keep the JSON text that they came from, and that text is sent on.
 * undefined: an object in it has a name twice. Readers disagree about such a text, so that it is never put into other JSON.
 */
const TEXTS = new WeakMap<object, string | undefined>();

/** Members whose object belongs to the client or the model. */
const FOREIGN: ReadonlySet<unknown> = new Set(['input', 'arguments', 'args', 'input_schema', 'parameters', 'schema']);

/** Returns the text that an object came from; undefined if it keeps none. */
export function rawTextOf(object: object): string | undefined {
  return TEXTS.get(object);
}

export function repeatsName(object: object): boolean {
  return TEXTS.has(object) && TEXTS.get(object) === undefined;
}

/** Returns a value as JSON. Objects that keep their text have it unchanged. */
export function jsonOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const text = TEXTS.get(value);
  if (text !== undefined) return text;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join()}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonOf(member)}`).join()}}`;
}

/** Returns an object with one more member, which stands before the others in its text. */
export function withMember(object: JsonObject, name: string, value: unknown): JsonObject {
  const added = { [name]: value, ...object };
  const rest = jsonOf(object).slice(1).trimStart();
  TEXTS.set(added, `{${JSON.stringify(name)}:${jsonOf(value)}${rest === '}' ? '' : ','}${rest}`);
  return added;
}

/** Parses JSON at once; undefined if it is none. Objects in `FOREIGN` members keep their text, or with `isForeign` the whole. */
export function parseRaw(bytes: Buffer, isForeign = false): unknown {
  const tree = new JsonTree(bytes, isForeign);
  if (!scanWhole([bytes], tree)) return undefined;
  for (const { set, start, end } of tree.longTexts) set(JSON.parse(bytes.toString('utf8', start - 1, end + 1)));
  return tree.root;
}

/** Parses the JSON of exactly one object that has no name twice, and keeps its text. Returns undefined for any other text. */
export function parseForeign(text: string): JsonObject | undefined {
  const object = asObject(parseRaw(Buffer.from(text), true));
  return object === undefined || repeatsName(object) ? undefined : object;
}

type Container = unknown[] | Record<string, unknown>;

interface LongText {
  readonly start: number;
  readonly end: number;
  set(text: string): void;
}

/** Builds the value that a scanner reads. Long texts are filled in later. */
export class JsonTree implements JsonObserver {
  readonly longTexts: LongText[] = [];
  readonly #root: unknown[] = [];
  readonly #open: Container[] = [this.#root];
  readonly #keys: string[] = [];
  /** The open foreign object: its depth, where it begins, and whether an object in it has a name twice. */
  #foreign: { readonly depth: number; readonly start: number; repeats: boolean } | undefined;

  constructor(
    private readonly bytes: Buffer,
    private readonly isForeign = false,
  ) {}

  get root(): unknown {
    return this.#root[0];
  }

  open(depth: number, isObject: boolean, { start }: JsonToken): void {
    const container: Container = isObject ? {} : [];
    const { name } = this.#add(container);
    this.#open.push(container);
    if (isObject && (depth === 1 ? this.isForeign : FOREIGN.has(name)))
      this.#foreign ??= { depth, start, repeats: false };
  }

  close(depth: number, { end }: JsonToken): void {
    const container = this.#open.pop() as Container;
    if (this.#foreign?.depth !== depth) return;
    const { start, repeats } = this.#foreign;
    TEXTS.set(container, repeats ? undefined : this.bytes.toString('utf8', start, end));
    this.#foreign = undefined;
  }

  key(depth: number, token: JsonToken): void {
    this.#keys[depth] = token.text() ?? (this.#parsed(token) as string);
  }

  scalar(_: number, firstByte: number, token: JsonToken): void {
    const value = firstByte === QUOTE ? token.text() : this.#parsed(token);
    const { container, name } = this.#add(value);
    const set = (text: string) => put(container, name, text);
    if (value === undefined) this.longTexts.push({ set, start: token.start + 1, end: token.end - 1 });
  }

  #parsed({ start, end }: JsonToken): unknown {
    return JSON.parse(this.bytes.toString('utf8', start, end));
  }

  /** Returns the place of the value. */
  #add(value: unknown): { readonly container: Container; readonly name: string | number } {
    const container = this.#open.at(-1) as Container;
    const name = Array.isArray(container) ? container.length : (this.#keys[this.#open.length - 1] as string);
    if (this.#foreign !== undefined && Object.hasOwn(container, name)) this.#foreign.repeats = true;
    put(container, name, value);
    return { container, name };
  }
}

/** As in `JSON.parse`, `__proto__` is an ordinary member. */
function put(container: Container, name: string | number, value: unknown): void {
  if (name !== '__proto__') (container as Record<string | number, unknown>)[name] = value;
  else Object.defineProperty(container, name, { value, enumerable: true, configurable: true, writable: true });
}
