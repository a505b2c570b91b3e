/** How many calls a key, and an account, may have under way at a time. */
export interface ConcurrencyLimits {
  readonly perKey: number;
  readonly perAccount: number;
}

/** The result of `enter`: either `leave`, which ends the call's count, or which limit is reached. */
export type Entered =
  | { readonly outcome: 'entered'; readonly leave: () => void }
  | { readonly outcome: 'full'; readonly of: 'key' | 'account'; readonly limit: number };

/** Counts the calls under way in this process by key and account. A key or account without a call takes no memory. */
export class ConcurrentCalls {
  readonly #counts = new Map<string, number>();

  enter(keyId: string, accountId: string, { perKey, perAccount }: ConcurrencyLimits): Entered {
    if (this.#count(keyId) >= perKey) return { outcome: 'full', of: 'key', limit: perKey };
    if (this.#count(accountId) >= perAccount) return { outcome: 'full', of: 'account', limit: perAccount };
    this.#add(keyId, 1);
    this.#add(accountId, 1);
    let hasLeft = false;
    const leave = () => {
      if (hasLeft) return;
      hasLeft = true;
      this.#add(keyId, -1);
      this.#add(accountId, -1);
    };
    return { outcome: 'entered', leave };
  }

  /** The number of keys and accounts that have calls under way. */
  get size(): number {
    return this.#counts.size;
  }

  #count(id: string): number {
    return this.#counts.get(id) ?? 0;
  }

  #add(id: string, calls: number): void {
    const count = this.#count(id) + calls;
    if (count === 0) this.#counts.delete(id);
    else this.#counts.set(id, count);
  }
}
