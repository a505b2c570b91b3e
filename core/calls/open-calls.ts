import { DenseSet } from '../base/dense-set';
import type { Call } from './call';
import type { CallEnded } from './call-ended';

/** The calls of this process that have not ended. */
export class OpenCalls {
  readonly #calls = new DenseSet<Call>();
  #whenNone: (() => void) | undefined;

  constructor(private readonly ended: CallEnded = () => undefined) {}

  /** Returns how many calls are open, and how many of them have a streamed answer. */
  count(): { readonly calls: number; readonly streams: number } {
    let streams = 0;
    for (const { answer } of this.#calls.all()) if (answer?.kind === 'stream') streams += 1;
    return { calls: this.#calls.size, streams };
  }

  /** Adds a call, and removes the call when it ends. A call must be added before its other end-of-call handlers, so that this removal runs last. */
  add(call: Call): Call {
    this.#calls.add(call);
    call.onEnd(() => {
      this.#calls.delete(call);
      this.ended(call);
      if (this.#calls.size === 0) this.#whenNone?.();
    });
    return call;
  }

  /** Resolves when no call is open. Calls whose answers are read to their end for disconnected clients count as open. */
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
 * The most unstreamed calls of one account that a process continues after their clients disconnected. At this number, new unstreamed calls
 * of the account are refused.
 */
export const MAX_DETACHED_CALLS = 8;

/** Counts detached calls by account: unstreamed calls whose clients have disconnected, and whose answers this process still reads to their end. */
class DetachedCalls {
  readonly #counts = new Map<string, number>();

  /** Counts a call whose client has disconnected. Returns the function that ends its count. */
  enter(accountId: string): () => void {
    this.#add(accountId, 1);
    return () => this.#add(accountId, -1);
  }

  /** Returns whether the account has reached `MAX_DETACHED_CALLS`. */
  isFull(accountId: string): boolean {
    return (this.#counts.get(accountId) ?? 0) >= MAX_DETACHED_CALLS;
  }

  #add(accountId: string, calls: number): void {
    const count = (this.#counts.get(accountId) ?? 0) + calls;
    if (count === 0) this.#counts.delete(accountId);
    else this.#counts.set(accountId, count);
  }
}

/** The counts of calls whose clients have disconnected. All pipelines of this process share them. */
export const DETACHED_CALLS = new DetachedCalls();
