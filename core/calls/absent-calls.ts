/**
 * The most unstreamed calls of one account in one process that may run without their clients. At this number further unstreamed
 * calls are refused.
 */
export const ABSENT_CALLS_AT_MOST = 8;

/** Counts by account the unstreamed calls of this process that are read to their end although their clients have left. */
export class AbsentCalls {
  readonly #counts = new Map<string, number>();

  /** Counts a call whose client has left. Returns what ends its count. */
  enter(accountId: string): () => void {
    this.#add(accountId, 1);
    return () => this.#add(accountId, -1);
  }

  /** True while the account has as many such calls as it may have. */
  isFull(accountId: string): boolean {
    return (this.#counts.get(accountId) ?? 0) >= ABSENT_CALLS_AT_MOST;
  }

  #add(accountId: string, calls: number): void {
    const count = (this.#counts.get(accountId) ?? 0) + calls;
    if (count === 0) this.#counts.delete(accountId);
    else this.#counts.set(accountId, count);
  }
}

/** The count of the process. All pipelines share it. */
export const ABSENT_CALLS = new AbsentCalls();
