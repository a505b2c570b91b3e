/** No sender gives up because of a shorter pause. */
const LONG_MS = 1_000;
/** A sender that gave up during a pause is noticed after this much reading. */
const READ_WITHIN_MS = 60_000;

/** Measures for how long reading pauses because a client is slow. */
export class Pauses {
  /** How long the pauses that have ended lasted together. */
  #endedMs = 0;
  #beganAtMs: number | undefined;
  #stoppedAtMs: number | undefined;
  /** The end of the last long pause, in milliseconds of reading. A client cannot let it pass by reading slowly. */
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

  /** True if there was a pause of more than a second in the last minute. Only time of reading counts. */
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
