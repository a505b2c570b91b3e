/** How long reading must pause for the pause to count as long. No sender gives up because of a shorter pause. */
const LONG_MS = 1_000;
/** How long the gateway must read after a pause before it can rule out that the sender gave up during the pause. Only time of reading counts. */
const READ_WITHIN_MS = 60_000;

/** Measures for how long reading pauses because a client is slow. */
export class Pauses {
  /** The total duration of the pauses in reading that have ended. */
  #endedMs = 0;
  #beganAtMs: number | undefined;
  #stoppedAtMs: number | undefined;
  /** When the last long pause ended, on a clock that runs only while the gateway reads. A slow client cannot make the pause expire by waiting. */
  #longUntilReadMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly clock = (): number => performance.now()) {}

  begin(): void {
    this.#beganAtMs ??= this.#nowMs;
  }

  end(): void {
    const lastedMs = this.#lastsMs;
    this.#beganAtMs = undefined;
    this.#endedMs += lastedMs;
    if (lastedMs > LONG_MS) this.#longUntilReadMs = this.#nowMs - this.#endedMs;
  }

  stop(): void {
    this.end();
    this.#stoppedAtMs ??= this.clock();
  }

  get totalMs(): number {
    return this.#endedMs + this.#lastsMs;
  }

  /** Whether reading paused for more than a second, now or within the last minute of reading. Time in which the gateway does not read does not count. */
  get wasLong(): boolean {
    return this.#lastsMs > LONG_MS || this.#nowMs - this.totalMs - this.#longUntilReadMs < READ_WITHIN_MS;
  }

  get #lastsMs(): number {
    return this.#beganAtMs === undefined ? 0 : this.#nowMs - this.#beganAtMs;
  }

  get #nowMs(): number {
    return this.#stoppedAtMs ?? this.clock();
  }
}
