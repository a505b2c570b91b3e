/** The most bytes that are read for the usage behind a stop reason after the client left. */
const USAGE_WITHIN_BYTES = 64 * 1_024;

/** Bounds how long, and how much, of a stream is read after its client has left or its answer is whole. */
export class ReadingOn {
  readonly #usageWithinMs: number;
  readonly #end: () => void;
  #absence: NodeJS.Timeout | undefined;
  #usage: NodeJS.Timeout | undefined;
  #usageBytes = 0;
  /** Whether the time for a client that has left ran out before the answer was whole. */
  isOver = false;

  /** `end` stops the reading. Behind a stop reason the stream is read for at most `usageWithinMs`. */
  constructor(usageWithinMs: number, end: () => void) {
    this.#usageWithinMs = usageWithinMs;
    this.#end = end;
  }

  /** Starts the time for which the upstream is read after the client has left. */
  withoutClient(ms: number): void {
    this.#absence = setTimeout(() => {
      if (this.#usage !== undefined) return;
      this.isOver = true;
      this.#end();
    }, ms);
  }

  /** Starts the wait for the usage of a whole answer. */
  forUsage(): void {
    this.#usage ??= setTimeout(this.#end, this.#usageWithinMs);
  }

  /** Counts bytes behind a stop reason after the client has left. */
  noteBytes(bytes: number): void {
    this.#usageBytes += bytes;
    if (this.#usageBytes > USAGE_WITHIN_BYTES) this.#end();
  }

  stop(): void {
    clearTimeout(this.#absence);
    clearTimeout(this.#usage);
  }
}
