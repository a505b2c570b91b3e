/** How long the ledger is not asked again about a key that it did not know. */
const UNKNOWN_FOR_MS = 5_000;
const MOST_REMEMBERED = 10_000;

/**
 * Hashes of keys that the ledger did not know a moment ago. A client with a wrong setting may repeat its key thousands of times a
 * second. Without this cache, each of these calls would ask the ledger.
 */
export class UnknownKeys {
  readonly #now: () => number;
  /** When each hash is forgotten. All stay equally long, so the first one is always the first to expire. */
  readonly #untilMs = new Map<string, number>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  has(hash: string): boolean {
    const untilMs = this.#untilMs.get(hash);
    return untilMs !== undefined && untilMs > this.#now();
  }

  add(hash: string): void {
    this.#untilMs.delete(hash);
    this.#untilMs.set(hash, this.#now() + UNKNOWN_FOR_MS);
    if (this.#untilMs.size > MOST_REMEMBERED) this.#forgetFirst();
  }

  forget(hash: string): void {
    this.#untilMs.delete(hash);
  }

  #forgetFirst(): void {
    for (const hash of this.#untilMs.keys()) {
      this.#untilMs.delete(hash);
      return;
    }
  }
}
