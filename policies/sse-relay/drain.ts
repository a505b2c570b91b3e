/** How long, and how much, an upstream is read on for a client that has left. */
const DRAIN_AT_MOST_MS = 60_000;
const DRAIN_AT_MOST_BYTES = 1_024 * 1_024;

/** Ends the reading of a stream nobody waits for when it takes too long or comes to too much. */
export class DrainBounds {
  readonly #end: () => void;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  constructor(end: () => void) {
    this.#end = end;
    this.#timer = setTimeout(end, DRAIN_AT_MOST_MS);
  }

  note(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > DRAIN_AT_MOST_BYTES) this.#end();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
