/** How long a key that the ledger did not know is not asked about again. */
const UNKNOWN_FOR_MS = 5_000;
const MOST_REMEMBERED = 10_000;

/**
 * Hashes of keys that the ledger did not know a moment ago. Without them a client that repeats a wrong key, as one with a
 * mistake in its settings does thousands of times a second, costs the ledger a question for each call.
 */
export class UnknownKeys {
  readonly #now: () => number;
  /** When each is forgotten. All stay equally long, so the first one is always the first to go. */
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
