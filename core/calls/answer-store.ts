import { performance } from 'node:perf_hooks';

/** An unstreamed answer that was charged, as a repetition of its call is given it. */
export interface StoredAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface AnswerStoreLimits {
  /** Of bodies and headers of all answers. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** What an answer takes beside its bytes. */
const OVERHEAD_BYTES = 512;

interface Kept {
  readonly answer: StoredAnswer;
  readonly bytes: number;
  readonly untilMs: number;
}

/**
 * Keeps answers of this process for clients that repeat a call with its Idempotency-Key, by the reservation of the first
 * call. It is bounded in bytes and time, and the oldest answer gives way. It also knows which of those calls are open, so that a
 * repetition can wait for the answer. The ledger decides who may have an answer: nothing is asked here before it was asked.
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

  /** Bytes that all answers take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A call has begun. Returns what ends it, with its answer if that may be kept; the first end counts. */
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

  /** Resolves when the call has ended; undefined where this process does not have it open. */
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

  /** Drops what is too old, and the oldest ones until the others take no more than this. */
  #dropOld(mostBytes: number): void {
    const now = this.#now();
    for (const [rid, { bytes, untilMs }] of this.#kept) {
      if (untilMs > now && this.#bytes <= mostBytes) return;
      this.#kept.delete(rid);
      this.#bytes -= bytes;
    }
  }
}
