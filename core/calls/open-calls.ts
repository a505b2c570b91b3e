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

  /** Adds a call, and removes it at its end. It is added first, so its end-of-call handler runs last. */
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

/** The most unstreamed calls of one account that a process continues after their clients disconnected. It then refuses further ones. */
export const MAX_DETACHED_CALLS = 8;

/** Counts by account the unstreamed calls of this process whose answers it reads to their end although the clients have disconnected. */
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

/** The counts of calls without a client in this process, which all its pipelines share. */
export const DETACHED_CALLS = new DetachedCalls();
