import type { Call } from './call';

/** The calls of this process that have not ended. */
export class OpenCalls {
  readonly #calls = new Set<Call>();
  #whenNone: (() => void) | undefined;

  add(call: Call): Call {
    this.#calls.add(call);
    call.onEnd(() => {
      this.#calls.delete(call);
      if (this.#calls.size === 0) this.#whenNone?.();
    });
    return call;
  }

  /** Resolves when no call is open, also none that is read on for a client that has left. */
  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve;
      if (this.#calls.size === 0) resolve();
    });
  }

  /** Ends them all: see `Call.cutOff`. */
  cutOff(): void {
    for (const call of this.#calls) call.cutOff();
  }
}
