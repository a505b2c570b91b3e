import { performance } from 'node:perf_hooks';
import { getOrInsert } from '../base/collections';

/** A charged, unstreamed answer, as a repetition of its call gets it. */
export interface StoredAnswer {
  readonly status: number;
  /** The names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

interface AnswerStoreLimits {
  /** The most bytes of all answers, headers included. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** The memory that an answer takes beside its bytes. */
const OVERHEAD_BYTES = 512;

interface StoredEntry {
  readonly accountId: string;
  readonly answer: StoredAnswer;
  readonly bytes: number;
  readonly untilMs: number;
}

/** The answers of one account, oldest first, by the reservation of their call. */
interface OfAccount {
  readonly rids: Set<string>;
  bytes: number;
}

/**
 * Keeps answers of this process for clients that repeat a call with its Idempotency-Key, by the reservation of the first call. It
 * is bounded in bytes and time. A new answer takes its room from the account that has most, so that no account pushes out the
 * answers of one that has less. It also knows which of those calls are open, so that a repetition can wait. Callers must ask the
 * ledger first, because the ledger decides which key may get an answer.
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

  /** The bytes that all answers take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Notes that a call of an account is open. Returns what ends it, with its answer if that may be kept; the first end counts. */
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

  /** Resolves when the call has ended; undefined if it is not open in this process. */
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

  /** Returns the account whose answers take most. There are never more accounts than answers, some thousands. */
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
