import { type JsonObserver, JsonScanner, type JsonToken } from '../../core/http/json-scanner';

/** The form of the vendors' member names. All JSON readers read such names alike, whatever case and Unicode form they compare in. */
const PLAIN_KEY = /^[a-z][a-z0-9_]*$/;

/**
 * True if JSON readers could read the objects of a text differently: a key is repeated or is not in plain lower case. `except` is
 * a top-level member whose value may have any keys, because it decides nothing here.
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
  /** The keys seen in each open container. */
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
