/** How much is read behind a stop reason for the usage. */
const USAGE_WITHIN_BYTES = 64 * 1_024;

/** Bounds how long, and how much, of a stream is read although its client has left, or its answer is whole. */
export class ReadingOn {
  readonly #usageWithinMs: number;
  readonly #end: () => void;
  #absence: NodeJS.Timeout | undefined;
  #usage: NodeJS.Timeout | undefined;
  #usageBytes = 0;
  /** The time for a client that has left is over, and the answer is not whole. */
  isOver = false;

  /** `end` stops the reading; behind a stop reason it is read for `usageWithinMs`. */
  constructor(usageWithinMs: number, end: () => void) {
    this.#usageWithinMs = usageWithinMs;
    this.#end = end;
  }

  /** The client has left: the upstream is read for so long. */
  withoutClient(ms: number): void {
    this.#absence = setTimeout(() => {
      if (this.#usage !== undefined) return;
      this.isOver = true;
      this.#end();
    }, ms);
  }

  /** The answer is whole and its usage is waited for. */
  forUsage(): void {
    this.#usage ??= setTimeout(this.#end, this.#usageWithinMs);
  }

  /** Counts what came behind a stop reason for a client that has left. */
  noteBytes(bytes: number): void {
    this.#usageBytes += bytes;
    if (this.#usageBytes > USAGE_WITHIN_BYTES) this.#end();
  }

  stop(): void {
    clearTimeout(this.#absence);
    clearTimeout(this.#usage);
  }
}
