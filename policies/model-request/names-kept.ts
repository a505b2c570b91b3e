import { type JsonObserver, JsonScanner, type JsonToken, QUOTE } from '../../core/http/json-scanner';
import { isForeign } from './address-gate';

/** Names of members whose text names an object. In the schema of a client's arguments such keys have objects as values. */
const NAMING = /(^|[_-])ids?$|^(container|file|skill|thread|vector_store)s?$/i;
const CAMEL_ID = /[a-z0-9]Ids?$/;

/** True if a tool names something by id, or by an address that is not of the web: the object at the vendor may be another account's. */
export function namesKept(text: string): boolean {
  const names = new NamedIds();
  const scanner = new JsonScanner(names);
  scanner.feed(Buffer.from(text));
  scanner.finish();
  return names.hasSome;
}

class NamedIds implements JsonObserver {
  hasSome = false;
  /** The key under way at each depth; an array has the key of its owner. */
  readonly #keys: string[] = [];

  open(depth: number, isObject: boolean): void {
    this.#keys[depth] = isObject ? '' : (this.#keys[depth - 1] ?? '');
  }

  close(): void {}

  key(depth: number, token: JsonToken): void {
    this.#keys[depth] = token.text() ?? '';
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    const key = this.#keys[depth] ?? '';
    this.hasSome ||= firstByte === QUOTE && (NAMING.test(key) || CAMEL_ID.test(key) || isForeign(token));
  }
}
