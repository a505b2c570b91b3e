import { DenseSet } from '../base/dense-set';
import type { Call } from './call';
import type { CallEnded } from './call-ended';

/** The calls of this process that have not ended. */
export class OpenCalls {
  readonly #calls = new DenseSet<Call>();
  #whenNone: (() => void) | undefined;

  constructor(private readonly ended: CallEnded = () => undefined) {}

  /** Returns how many calls are open, and how many of them have a stream as their answer. */
  count(): { readonly calls: number; readonly streams: number } {
    let streams = 0;
    for (const { answer } of this.#calls.all()) if (answer?.kind === 'stream') streams += 1;
    return { calls: this.#calls.size, streams };
  }

  /** Adds a call. Work registered here first runs last at the call's end. */
  add(call: Call): Call {
    this.#calls.add(call);
    call.onEnd(() => {
      this.#calls.delete(call);
      this.ended(call);
      if (this.#calls.size === 0) this.#whenNone?.();
    });
    return call;
  }

  /** Resolves when no call is open, including calls that are read on for a client that has left. */
  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve;
      if (this.#calls.size === 0) resolve();
    });
  }

  /** Cuts all open calls off: see `Call.cutOff`. */
  cutOff(): void {
    for (const call of this.#calls.all()) call.cutOff();
  }
}

/**
 * The most unstreamed calls of one account in one process that may run without their clients. At this number further unstreamed
 * calls are refused.
 */
export const MAX_DETACHED_CALLS = 8;

/** Counts by account the unstreamed calls of this process that are read to their end although their clients have left. */
class DetachedCalls {
  readonly #counts = new Map<string, number>();

  /** Counts a call whose client has left. Returns what ends its count. */
  enter(accountId: string): () => void {
    this.#add(accountId, 1);
    return () => this.#add(accountId, -1);
  }

  /** True while the account has as many such calls as it may have. */
  isFull(accountId: string): boolean {
    return (this.#counts.get(accountId) ?? 0) >= MAX_DETACHED_CALLS;
  }

  #add(accountId: string, calls: number): void {
    const count = (this.#counts.get(accountId) ?? 0) + calls;
    if (count === 0) this.#counts.delete(accountId);
    else this.#counts.set(accountId, count);
  }
}

/** The count of the process. All pipelines share it. */
export const DETACHED_CALLS = new DetachedCalls();
