/** A sender does not give up because of a shorter pause. */
const LONG_MS = 1_000;
/** The bytes that were in transit during a pause are read within this time. */
const BACKLOG_MS = 5_000;

/**
 * Remembers when a body was not read. The reader sees the end of a connection only after the bytes before it, so an end shortly
 * after a long pause has probably happened during the pause.
 */
export class Pauses {
  #beganMs: number | undefined;
  #longBeganMs: number | undefined;
  /** How long the reader has read since that pause. */
  #readMs = 0;
  #resumedMs = 0;

  begin(nowMs: number): void {
    this.#readMs += nowMs - this.#resumedMs;
    this.#beganMs = nowMs;
  }

  end(nowMs: number): void {
    const beganMs = this.#beganMs ?? nowMs;
    this.#beganMs = undefined;
    this.#resumedMs = nowMs;
    if (nowMs - beganMs < LONG_MS || this.#isRecent(this.#readMs)) return;
    this.#longBeganMs = beganMs;
    this.#readMs = 0;
  }

  /** Returns the earliest time at which an end that is noticed now can have happened. */
  endedSince(nowMs: number): number {
    if (this.#beganMs !== undefined) return nowMs;
    const isRecent = this.#isRecent(this.#readMs + nowMs - this.#resumedMs);
    return isRecent ? (this.#longBeganMs ?? nowMs) : nowMs;
  }

  #isRecent(readMs: number): boolean {
    return this.#longBeganMs !== undefined && readMs < BACKLOG_MS;
  }
}
