import { type JsonObserver, JsonScanner, type JsonToken } from '../../core/http/json-scanner';

/** Vendors' names of members. Readers agree on them in every case and normal form. */
const PLAIN_KEY = /^[a-z][a-z0-9_]*$/;

/** Says whether readers could differ in what the objects of a JSON text say: a key stands twice, or is not in plain lower case. */
export function hasDoubtfulKeys(text: string): boolean {
  const keys = new Keys();
  const scanner = new JsonScanner(keys);
  scanner.feed(Buffer.from(text));
  scanner.finish();
  return keys.isDoubtful;
}

class Keys implements JsonObserver {
  isDoubtful = false;
  /** Of each open container. */
  readonly #known: Set<string>[] = [];

  open(): void {
    this.#known.push(new Set());
  }

  close(): void {
    this.#known.pop();
  }

  key(_depth: number, token: JsonToken): void {
    const key = token.text() ?? '';
    const known = this.#known.at(-1);
    if (known?.has(key) === true || !PLAIN_KEY.test(key)) this.isDoubtful = true;
    known?.add(key);
  }

  scalar(): void {}
}
