import { QUOTE, ZERO } from '../http/json-bytes';
import type { JsonObserver, JsonToken } from '../http/json-scanner';
import { ForeignTexts } from '../http/raw-json';

type Container = unknown[] | Record<string, unknown>;

interface LongText {
  readonly start: number;
  readonly end: number;
  set(text: string): void;
}

/** Returns the value that stands for a number of a JSON text, from its characters. */
export type NumberReader = (text: string) => unknown;

/**
 * Builds the value that a JSON scanner reads, in steps. Long texts get a placeholder first; the caller decodes and sets them afterwards.
 * `readNumber` may keep the digits of a number, which a JavaScript number would round.
 */
export class JsonTree implements JsonObserver {
  readonly longTexts: LongText[] = [];
  readonly #root: unknown[] = [];
  readonly #open: Container[] = [this.#root];
  readonly #keys: string[] = [];
  #texts: ForeignTexts | undefined;

  constructor(
    private readonly bytes: Buffer,
    private readonly readNumber: NumberReader = JSON.parse,
  ) {}

  get root(): unknown {
    return this.#root[0];
  }

  open(depth: number, isObject: boolean, token: JsonToken): void {
    const container: Container = isObject ? {} : [];
    this.#add(container);
    this.#open.push(container);
    this.#texts ??= new ForeignTexts(this.bytes, container);
    this.#texts.open(depth, isObject, token);
  }

  close(depth: number, token: JsonToken): void {
    this.#open.pop();
    this.#texts?.close(depth, token);
  }

  key(depth: number, token: JsonToken): void {
    this.#keys[depth] = token.text() ?? (this.#parsed(token) as string);
    this.#texts?.key(depth, token);
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    const value = firstByte === QUOTE ? token.text() : this.#literal(firstByte, token);
    if (value === undefined) this.#addLong(token);
    else this.#add(value);
    this.#texts?.scalar(depth);
  }

  #literal(firstByte: number, token: JsonToken): unknown {
    return firstByte === ZERO ? this.readNumber(this.#textOf(token)) : this.#parsed(token);
  }

  #parsed(token: JsonToken): unknown {
    return JSON.parse(this.#textOf(token));
  }

  #textOf({ start, end }: JsonToken): string {
    return this.bytes.toString('utf8', start, end);
  }

  #add(value: unknown): void {
    put(this.#container, this.#name, value);
  }

  #addLong({ start, end }: JsonToken): void {
    const container = this.#container;
    const name = this.#name;
    const later = {};
    this.#add(later);
    const set = (text: string) => {
      // The placeholder may be gone, because a later member of the same name has replaced it. This text is then dropped.
      if ((container as Record<string | number, unknown>)[name] === later) put(container, name, text);
    };
    this.longTexts.push({ set, start: start + 1, end: end - 1 });
  }

  get #container(): Container {
    return this.#open.at(-1) as Container;
  }

  /** The name or index, in its container, of the value that is being read. */
  get #name(): string | number {
    const container = this.#container;
    return Array.isArray(container) ? container.length : (this.#keys[this.#open.length - 1] as string);
  }
}

/** As in `JSON.parse`, `__proto__` is an ordinary member. */
function put(container: Container, name: string | number, value: unknown): void {
  if (name !== '__proto__') (container as Record<string | number, unknown>)[name] = value;
  else Object.defineProperty(container, name, { value, enumerable: true, configurable: true, writable: true });
}
