const SHARE_OF_CALLS = 0.2;
const WINDOW_SECONDS = 10;
/**
 * How many further attempts the window of ten seconds always allows: three a second. With one call a second, each can then try four
 * upstreams, which overloads none.
 */
const MIN_ATTEMPTS = 3 * WINDOW_SECONDS;

/** The budget for further attempts after a failure, so that retries do not multiply an outage. It counts the calls and the further attempts of each second. */
export class RetryBudget {
  readonly #calls = new Float64Array(WINDOW_SECONDS);
  readonly #spent = new Float64Array(WINDOW_SECONDS);
  #second = 0;
  #callsInWindow = 0;
  #spentInWindow = 0;

  constructor(readonly nowMs: () => number = () => performance.now()) {}

  noteCall(): void {
    this.#calls[this.#slot()] = (this.#calls[this.#slot()] ?? 0) + 1;
    this.#callsInWindow += 1;
  }

  get isLeft(): boolean {
    this.#slot();
    return this.#spentInWindow + 1 <= Math.max(MIN_ATTEMPTS, this.#callsInWindow * SHARE_OF_CALLS);
  }

  spend(): void {
    this.#spent[this.#slot()] = (this.#spent[this.#slot()] ?? 0) + 1;
    this.#spentInWindow += 1;
  }

  /** Returns the counters of the current second and clears those that have left the window. */
  #slot(): number {
    const second = Math.floor(this.nowMs() / 1_000);
    for (let passed = Math.max(this.#second, second - WINDOW_SECONDS) + 1; passed <= second; passed += 1) {
      const slot = passed % WINDOW_SECONDS;
      this.#callsInWindow -= this.#calls[slot] ?? 0;
      this.#spentInWindow -= this.#spent[slot] ?? 0;
      this.#calls[slot] = 0;
      this.#spent[slot] = 0;
    }
    this.#second = second;
    return second % WINDOW_SECONDS;
  }
}
