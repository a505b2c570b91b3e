import { type JsonObserver, JsonScanner, type JsonToken } from '../../core/http/json-scanner';

/** Vendors' names of members. Readers agree on them in every case and normal form. */
const PLAIN_KEY = /^[a-z][a-z0-9_]*$/;

/**
 * Says whether readers could differ in what the objects of a JSON text say: a key stands twice, or is not in plain lower case. `except` is
 * the top-level member whose value may have any keys, because it decides nothing here.
 */
export function hasDoubtfulKeys(text: string, except?: string): boolean {
  const keys = new Keys(except);
  const scanner = new JsonScanner(keys);
  scanner.feed(Buffer.from(text));
  scanner.finish();
  return keys.isDoubtful;
}

class Keys implements JsonObserver {
  isDoubtful = false;
  /** Of each open container. */
  readonly #known: Set<string>[] = [];
  readonly #except: string | undefined;
  #isExcepted = false;

  constructor(except: string | undefined) {
    this.#except = except;
  }

  open(): void {
    this.#known.push(new Set());
  }

  close(): void {
    this.#known.pop();
  }

  key(depth: number, token: JsonToken): void {
    if (depth > 1 && this.#isExcepted) return;
    const key = token.text() ?? '';
    if (depth === 1) this.#isExcepted = key === this.#except;
    const known = this.#known.at(-1);
    if (known?.has(key) === true || !PLAIN_KEY.test(key)) this.isDoubtful = true;
    known?.add(key);
  }

  scalar(): void {}
}
