/** How long, and how much, an upstream is read on for a client that has left. */
const DRAIN_AT_MOST_MS = 60_000;
const DRAIN_AT_MOST_BYTES = 1_024 * 1_024;
const LOOK_MS = 250;

/** Ends the reading of a stream nobody waits for: when it takes too long, comes to too much, or the process is to stop. */
export class DrainBounds {
  readonly #end: () => void;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  constructor(isStopping: () => boolean, end: () => void) {
    this.#end = end;
    const overMs = performance.now() + DRAIN_AT_MOST_MS;
    this.#timer = setInterval(() => {
      if (isStopping() || performance.now() > overMs) end();
    }, LOOK_MS);
  }

  note(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > DRAIN_AT_MOST_BYTES) this.#end();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
