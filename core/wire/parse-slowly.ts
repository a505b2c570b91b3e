import { setImmediate as nextTurn } from 'node:timers/promises';
import { type JsonObserver, JsonScanner, type JsonToken } from '../http/json-scanner';
import type { RequestBody } from './body-edits';

/** Larger bodies are parsed and written in steps, and other calls are served between them. No step takes 20 ms. */
export const AT_ONCE_BYTES = 512 * 1_024;
/** The work of one step. */
export const PIECE_BYTES = 128 * 1_024;

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const LETTER_U = 0x75;

/** Parses a body that is known to be valid JSON. */
export async function parseSlowly({
  chunks,
  byteLength,
}: Pick<RequestBody, 'chunks' | 'byteLength'>): Promise<unknown> {
  const bytes = Buffer.concat(chunks, byteLength);
  if (byteLength <= AT_ONCE_BYTES) return JSON.parse(bytes.toString('utf8'));
  const tree = new Tree(bytes);
  const scanner = new JsonScanner(tree);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    scanner.feed(bytes.subarray(at, at + PIECE_BYTES));
    await nextTurn();
  }
  scanner.finish();
  for (const { set, start, end } of tree.longTexts) set(await decode(bytes.subarray(start, end)));
  return tree.root;
}

type Container = unknown[] | Record<string, unknown>;

interface LongText {
  readonly start: number;
  readonly end: number;
  set(text: string): void;
}

/** Builds the value that a scanner reads. Long texts are filled in later. */
class Tree implements JsonObserver {
  root: unknown;
  readonly longTexts: LongText[] = [];
  readonly #open: Container[] = [];
  readonly #keys: string[] = [];

  constructor(private readonly bytes: Buffer) {}

  open(_: number, isObject: boolean): void {
    const container: Container = isObject ? {} : [];
    this.#add(container);
    this.#open.push(container);
  }

  close(): void {
    this.#open.pop();
  }

  key(depth: number, token: JsonToken): void {
    this.#keys[depth] = token.text() ?? this.#parsed(token);
  }

  scalar(_: number, firstByte: number, token: JsonToken): void {
    if (firstByte !== QUOTE) {
      this.#add(JSON.parse(this.#parsed(token)));
      return;
    }
    const text = token.text();
    const set = this.#add(text);
    if (text === undefined) this.longTexts.push({ set, start: token.start + 1, end: token.end - 1 });
  }

  #parsed({ start, end }: JsonToken): string {
    return this.bytes.toString('utf8', start, end);
  }

  /** Returns a function that replaces the value at this position. */
  #add(value: unknown): (value: unknown) => void {
    const container = this.#open.at(-1);
    if (container === undefined) {
      this.root = value;
      return (other) => {
        this.root = other;
      };
    }
    if (Array.isArray(container)) {
      const at = container.push(value) - 1;
      return (other) => {
        container[at] = other;
      };
    }
    const key = this.#keys[this.#open.length] as string;
    define(container, key, value);
    return (other) => define(container, key, other);
  }
}

/** As in `JSON.parse`, `__proto__` is an ordinary member. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns the text of a string's raw bytes, in pieces that end between two escapes and between two characters. */
async function decode(raw: Buffer): Promise<string> {
  let text = '';
  for (let from = 0; from < raw.length; ) {
    const to = endOfPiece(raw, Math.min(from + PIECE_BYTES, raw.length), from);
    const piece = raw.subarray(from, to);
    const plain = piece.toString('utf8');
    text += piece.includes(BACKSLASH) ? (JSON.parse(`"${plain}"`) as string) : plain;
    from = to;
    await nextTurn();
  }
  return text;
}

/** Returns the offset after the escape that crosses `to`, or before the character that does. */
function endOfPiece(raw: Buffer, to: number, from: number): number {
  let at = from;
  for (;;) {
    const backslash = raw.indexOf(BACKSLASH, at);
    if (backslash === -1 || backslash >= to) break;
    at = backslash + (raw[backslash + 1] === LETTER_U ? 6 : 2);
    if (at >= to) return at;
  }
  let end = to;
  while (end < raw.length && ((raw[end] as number) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Writes a value as JSON in steps. Other calls are served between them. */
export async function writeSlowly(value: unknown): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let waiting = '';
  for (const text of textsOf(value)) {
    waiting += text;
    if (waiting.length < PIECE_BYTES) continue;
    pieces.push(Buffer.from(waiting));
    waiting = '';
    await nextTurn();
  }
  if (waiting !== '') pieces.push(Buffer.from(waiting));
  return pieces;
}

/** Yields the JSON of a value in short texts. */
function* textsOf(value: unknown): Generator<string> {
  if (typeof value === 'string' && value.length > PIECE_BYTES) yield* longText(value);
  else if (typeof value !== 'object' || value === null) yield JSON.stringify(value);
  else if (Array.isArray(value)) yield* listOf(value);
  else yield* objectOf(value);
}

function* listOf(list: readonly unknown[]): Generator<string> {
  yield '[';
  for (const [at, each] of list.entries()) {
    if (at > 0) yield ',';
    yield* textsOf(each === undefined ? null : each);
  }
  yield ']';
}

function* objectOf(object: object): Generator<string> {
  let before = '{';
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* textsOf(value);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/** Splits between two characters, because half of a surrogate pair would be escaped. */
function* longText(text: string): Generator<string> {
  yield '"';
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_BYTES, text.length);
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1;
    yield JSON.stringify(text.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
