/** While an account has so many of them in one process, its further unstreamed calls are refused. */
export const ABSENT_CALLS_AT_MOST = 8;

/** Counts the unstreamed calls of this process that are read to their end although their clients have left, by account. */
export class AbsentCalls {
  readonly #counts = new Map<string, number>();

  /** Counts a call whose client has left. Returns what ends that. */
  enter(accountId: string): () => void {
    this.#add(accountId, 1);
    return () => this.#add(accountId, -1);
  }

  /** True while the account has as many of them as it may. */
  isFull(accountId: string): boolean {
    return (this.#counts.get(accountId) ?? 0) >= ABSENT_CALLS_AT_MOST;
  }

  #add(accountId: string, calls: number): void {
    const count = (this.#counts.get(accountId) ?? 0) + calls;
    if (count === 0) this.#counts.delete(accountId);
    else this.#counts.set(accountId, count);
  }
}

/** The one count of the process, whichever pipeline a call takes. */
export const ABSENT_CALLS = new AbsentCalls();
