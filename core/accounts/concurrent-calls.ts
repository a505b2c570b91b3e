import { fail } from '../base/errors';
import type { CallKey } from './identify';

/** How many calls a key, and an account, may have under way at a time. */
export interface ConcurrencyLimits {
  readonly perKey: number;
  readonly perAccount: number;
}

/** Counts the calls under way in this process by key and account. A key or account without a call takes no memory. */
export class ConcurrentCalls {
  readonly #counts = new Map<string, number>();

  /**
   * Counts a call until the function that it returns is called.
   * @throws CONCURRENCY_LIMIT
   */
  enter({ keyId, accountId }: Pick<CallKey, 'keyId' | 'accountId'>, limits: ConcurrencyLimits): () => void {
    this.#check(keyId, 'key', limits.perKey);
    this.#check(accountId, 'account', limits.perAccount);
    this.#add(keyId, 1);
    this.#add(accountId, 1);
    let hasLeft = false;
    return () => {
      if (hasLeft) return;
      hasLeft = true;
      this.#add(keyId, -1);
      this.#add(accountId, -1);
    };
  }

  /** The number of keys and accounts that have calls under way. */
  get size(): number {
    return this.#counts.size;
  }

  #check(id: string, of: 'key' | 'account', limit: number): void {
    if (this.#count(id) >= limit) throw fail('CONCURRENCY_LIMIT', { retryAfterSeconds: 1, details: { of, limit } });
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

/** The calls under way in this process, requests of keys to our own API included. A limit holds for the key, not for a pipeline. */
export const CONCURRENT = new ConcurrentCalls();
