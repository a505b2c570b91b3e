/** The number of calls per second above which a key gets an allowance at this node. */
const HOT_CALLS = 20;

const SECOND_MS = 1_000;
const HOLDS_KEPT = 15;

/** How often a key is used at this node, and the size of its holds. This decides whether the key gets an allowance, and how large it is. */
export class KeyTraffic {
  #second = 0;
  #calls = 0;
  #callsBefore = 0;
  readonly #holds: bigint[] = [];
  #at = 0;
  lastAt = 0;

  count(holdE8: bigint): void {
    this.lastAt = performance.now();
    const second = Math.floor(this.lastAt / SECOND_MS);
    if (second !== this.#second) {
      this.#callsBefore = second === this.#second + 1 ? this.#calls : 0;
      this.#second = second;
      this.#calls = 0;
    }
    this.#calls += 1;
    this.#holds[this.#at] = holdE8;
    this.#at = (this.#at + 1) % HOLDS_KEPT;
  }

  /**
   * Returns whether the key had more than HOT_CALLS calls in the last second. Calls of the previous clock second count in proportion to how
   * much of it lies within that time.
   */
  isHot(): boolean {
    const now = performance.now();
    const second = Math.floor(now / SECOND_MS);
    const [calls, before] =
      second === this.#second ? [this.#calls, this.#callsBefore] : [0, second === this.#second + 1 ? this.#calls : 0];
    return calls + before * (1 - (now / SECOND_MS - second)) > HOT_CALLS;
  }

  medianHoldE8(): bigint {
    const sorted = this.#holds.toSorted((one, other) => Number(one - other));
    return sorted[sorted.length >> 1] ?? 0n;
  }
}
