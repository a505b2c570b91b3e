/** Content comes in pieces with pauses between them; only a longer silence tells of output that is not shown. */
const PAUSE_AT_MOST_MS = 1_000;

/** Measures for how long an upstream sends nothing that is shown, such as while it reasons, whatever its client's pace. */
export class HiddenTime {
  #silentMs: number;
  #hiddenMs = 0;

  /** `silentMs`: how long the upstream has been silent before. */
  constructor(silentMs: number) {
    this.#silentMs = silentMs;
  }

  /** The upstream was waited for while this process ran: what came in a stall of it was not late. */
  waited(ms: number): void {
    this.#silentMs += ms;
  }

  /** The upstream has sent content. */
  shown(): void {
    this.#hiddenMs = this.ms;
    this.#silentMs = 0;
  }

  get ms(): number {
    return this.#silentMs > PAUSE_AT_MOST_MS ? this.#hiddenMs + this.#silentMs : this.#hiddenMs;
  }
}
