import { fail } from '../base/errors';
import type { CallKey } from './identify';

/** The largest numbers of concurrent calls of a key and of an account. */
export interface ConcurrencyLimits {
  readonly perKey: number;
  readonly perAccount: number;
}

/** Counts the running calls of this process by key and account. A key or account without running calls uses no memory. */
export class ConcurrentCalls {
  readonly #counts = new Map<string, number>();

  /**
   * Counts a call as running until the caller calls the returned function.
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

  /** The number of keys and accounts with running calls. */
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

/** The running calls of this process, including key requests to the gateway's own API. A limit applies to a key across all pipelines. */
export const CONCURRENT = new ConcurrentCalls();
