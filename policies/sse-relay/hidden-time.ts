/** The longest pause between two pieces of content. A longer silence means that the upstream writes output that it does not show. */
const PAUSE_AT_MOST_MS = 1_000;

/** Measures for how long an upstream writes output that it does not show, such as reasoning. The client's pace does not matter. */
export class HiddenTime {
  #silentMs: number;
  #hiddenMs = 0;

  /** `silentMs`: how long the upstream has been silent before this. */
  constructor(silentMs: number) {
    this.#silentMs = silentMs;
  }

  /** Adds a time of waiting for the upstream in which this process ran. Content that came during a stall of the process was not late. */
  waited(ms: number): void {
    this.#silentMs += ms;
  }

  /** Records that the upstream has sent content. */
  shown(): void {
    this.#hiddenMs = this.ms;
    this.#silentMs = 0;
  }

  get ms(): number {
    return this.#silentMs > PAUSE_AT_MOST_MS ? this.#hiddenMs + this.#silentMs : this.#hiddenMs;
  }
}
