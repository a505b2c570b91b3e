import { setImmediate as nextTurn } from 'node:timers/promises';
import { type JsonObserver, JsonScanner, type JsonToken } from '../http/json-scanner';
import type { RequestBody } from './body-edits';

/** Larger bodies are parsed piece by piece, with others served in between: no step takes 20 ms. */
const AT_ONCE_BYTES = 512 * 1_024;
/** A piece of text that is parsed in one step. */
const PIECE_BYTES = 256 * 1_024;

const BACKSLASH = 0x5c;

/** Parses a body that is known to be JSON. */
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
  return tree.root;
}

type Container = unknown[] | Record<string, unknown>;

/** Builds the value that a scanner reads. */
class Tree implements JsonObserver {
  root: unknown;
  readonly #bytes: Buffer;
  readonly #open: Container[] = [];
  readonly #keys: string[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  open(_: number, isObject: boolean): void {
    const container: Container = isObject ? {} : [];
    this.#add(container);
    this.#open.push(container);
  }

  close(): void {
    this.#open.pop();
  }

  key(depth: number, token: JsonToken): void {
    this.#keys[depth] = this.#textOf(token);
  }

  scalar(_: number, firstByte: number, token: JsonToken): void {
    const isText = firstByte === 0x22;
    this.#add(isText ? this.#textOf(token) : JSON.parse(this.#bytes.toString('latin1', token.start, token.end)));
  }

  #add(value: unknown): void {
    const depth = this.#open.length;
    const container = this.#open[depth - 1];
    if (container === undefined) this.root = value;
    else if (Array.isArray(container)) container.push(value);
    else define(container, this.#keys[depth] as string, value);
  }

  /** Long strings are mostly base64, without anything to unescape. */
  #textOf(token: JsonToken): string {
    const short = token.text();
    if (short !== undefined) return short;
    const raw = this.#bytes.subarray(token.start, token.end);
    return raw.indexOf(BACKSLASH) === -1
      ? raw.toString('utf8', 1, raw.length - 1)
      : (JSON.parse(raw.toString('utf8')) as string);
  }
}

/** As `JSON.parse` does: `__proto__` is a member like any other. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}
