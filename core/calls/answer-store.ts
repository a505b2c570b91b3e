import { performance } from 'node:perf_hooks';

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

interface Kept {
  readonly answer: StoredAnswer;
  readonly bytes: number;
  readonly untilMs: number;
}

/**
 * Keeps answers of this process for clients that repeat a call with its Idempotency-Key, by the reservation of the first call. It
 * is bounded in bytes and time and drops the oldest answer first. It also knows which of those calls are open, so that a
 * repetition can wait. Callers must ask the ledger first, because the ledger decides which key may get an answer.
 */
export class AnswerStore {
  readonly #limits: AnswerStoreLimits;
  readonly #now: () => number;
  readonly #kept = new Map<string, Kept>();
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

  /** Notes that a call is open. Returns what ends it, with its answer if that may be kept; the first end counts. */
  begin(rid: string): (answer: StoredAnswer | undefined) => void {
    let ended: () => void = () => undefined;
    this.#open.set(
      rid,
      new Promise((resolve) => {
        ended = resolve;
      }),
    );
    return (answer) => {
      if (!this.#open.delete(rid)) return;
      if (answer !== undefined) this.#keep(rid, answer);
      ended();
    };
  }

  /** Resolves when the call has ended; undefined if it is not open in this process. */
  whenEnded(rid: string): Promise<void> | undefined {
    return this.#open.get(rid);
  }

  find(rid: string): StoredAnswer | undefined {
    this.#dropOld(this.#limits.maxBytes);
    return this.#kept.get(rid)?.answer;
  }

  #keep(rid: string, answer: StoredAnswer): void {
    const headerBytes = answer.headers.reduce((sum, text) => sum + text.length, 0);
    const bytes = answer.body.length + headerBytes + OVERHEAD_BYTES;
    if (bytes > this.#limits.maxBytes) return;
    this.#dropOld(this.#limits.maxBytes - bytes);
    this.#kept.set(rid, { answer, bytes, untilMs: this.#now() + this.#limits.maxAgeMs });
    this.#bytes += bytes;
  }

  /** Drops expired answers, then the oldest ones until the rest takes no more than this. */
  #dropOld(mostBytes: number): void {
    const now = this.#now();
    for (const [rid, { bytes, untilMs }] of this.#kept) {
      if (untilMs > now && this.#bytes <= mostBytes) return;
      this.#kept.delete(rid);
      this.#bytes -= bytes;
    }
  }
}
