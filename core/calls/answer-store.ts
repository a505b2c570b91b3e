import { performance } from 'node:perf_hooks';
import { getOrInsert } from '../base/collections';

/** A charged, unstreamed answer, in the form in which a client that repeats the call gets it. */
export interface StoredAnswer {
  readonly status: number;
  /** The headers as a flat list: name, value, name, value… */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

interface AnswerStoreLimits {
  /** The most bytes that all stored answers may take, headers included. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** The memory that a stored answer takes in addition to its body and headers. */
const OVERHEAD_BYTES = 512;

interface StoredEntry {
  readonly accountId: string;
  readonly answer: StoredAnswer;
  readonly bytes: number;
  readonly untilMs: number;
}

/** The stored answers of one account by reservation id, oldest first. */
interface OfAccount {
  readonly rids: Set<string>;
  bytes: number;
}

/**
 * Stores answers of this process for clients that repeat a call with its Idempotency-Key, by the reservation of the first call. Bytes and
 * age are limited. A new answer displaces the oldest answers of the account with the most stored bytes, so a large account cannot displace
 * a small one's answers. The store also knows which calls with an Idempotency-Key are still open, so that a repetition can wait. Callers
 * must query the ledger first, because the ledger decides which key may get an answer.
 */
export class AnswerStore {
  readonly #limits: AnswerStoreLimits;
  readonly #now: () => number;
  readonly #kept = new Map<string, StoredEntry>();
  readonly #ofAccounts = new Map<string, OfAccount>();
  readonly #open = new Map<string, Promise<void>>();
  #bytes = 0;

  constructor(limits: AnswerStoreLimits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** The bytes that all stored answers take. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Notes that a call is open. Returns a function that notes the call's end and stores its answer, if there is one. Only the first use of
   * the function counts.
   */
  begin(rid: string, accountId: string): (answer: StoredAnswer | undefined) => void {
    let ended: () => void = () => undefined;
    this.#open.set(
      rid,
      new Promise((resolve) => {
        ended = resolve;
      }),
    );
    return (answer) => {
      if (!this.#open.delete(rid)) return;
      if (answer !== undefined) this.#keep(rid, accountId, answer);
      ended();
    };
  }

  /** Returns a promise that resolves when the call has ended; undefined if the call is not open in this process. */
  whenEnded(rid: string): Promise<void> | undefined {
    return this.#open.get(rid);
  }

  find(rid: string): StoredAnswer | undefined {
    this.#dropExpired();
    return this.#kept.get(rid)?.answer;
  }

  #keep(rid: string, accountId: string, answer: StoredAnswer): void {
    const headerBytes = answer.headers.reduce((sum, text) => sum + text.length, 0);
    const bytes = answer.body.length + headerBytes + OVERHEAD_BYTES;
    if (bytes > this.#limits.maxBytes) return;
    this.#dropExpired();
    this.#kept.set(rid, { accountId, answer, bytes, untilMs: this.#now() + this.#limits.maxAgeMs });
    const own = getOrInsert(this.#ofAccounts, accountId, () => ({ rids: new Set(), bytes: 0 }));
    own.rids.add(rid);
    own.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#limits.maxBytes) this.#dropOldest(this.#largest());
  }

  #dropExpired(): void {
    const now = this.#now();
    for (const [rid, { untilMs }] of this.#kept) {
      if (untilMs > now) return;
      this.#drop(rid);
    }
  }

  #dropOldest({ rids }: OfAccount): void {
    const [oldest] = rids;
    if (oldest !== undefined) this.#drop(oldest);
  }

  /** Returns the account whose answers take most bytes. The loop is short, because there are at most as many accounts as answers, some thousands. */
  #largest(): OfAccount {
    let largest: OfAccount = { rids: new Set(), bytes: -1 };
    for (const own of this.#ofAccounts.values()) if (own.bytes > largest.bytes) largest = own;
    return largest;
  }

  #drop(rid: string): void {
    const kept = this.#kept.get(rid);
    if (kept === undefined) return;
    const { accountId, bytes } = kept;
    this.#kept.delete(rid);
    this.#bytes -= bytes;
    const own = getOrInsert(this.#ofAccounts, accountId, () => ({ rids: new Set(), bytes: 0 }));
    own.rids.delete(rid);
    own.bytes -= bytes;
    if (own.rids.size === 0) this.#ofAccounts.delete(accountId);
  }
}
