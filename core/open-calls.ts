import type { Call } from './call';

/** The calls of this process that have not ended. */
export class OpenCalls {
  readonly #calls = new Set<Call>();

  add(call: Call): Call {
    this.#calls.add(call);
    call.onEnd(() => this.#calls.delete(call));
    return call;
  }

  /** Ends them all: see `Call.cutOff`. */
  cutOff(): void {
    for (const call of this.#calls) call.cutOff();
  }
}
