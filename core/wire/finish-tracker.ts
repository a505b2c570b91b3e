import type { EventNote } from '../catalog/upstream';

/**
 * Finds out when an answer is complete. An answer with one choice is complete with its stop reason. With several choices (`n`)
 * each has its own stop reason, and adapters keep no state: they can only report which choice an event ends.
 */
export class FinishTracker {
  readonly #choices: number;
  readonly #finished = new Set<number>();
  #isWhole = false;

  constructor(choices: number) {
    this.#choices = choices;
  }

  /** Returns true from the event on that ends the last choice. */
  note(event: EventNote): boolean {
    if (this.#isWhole) return true;
    // The protocol's own end of a stream replaces missing stop reasons. So do counts after the choices, because an upstream that
    // ignores `n` sends fewer choices.
    if (event.done === true) this.#isWhole = true;
    if (event.finalUsage === true && event.finish !== true && this.#finished.size > 0) this.#isWhole = true;
    if (event.finish !== true) return this.#isWhole;
    if (this.#choices === 1 || event.finishedChoices === undefined) {
      this.#isWhole = true;
      return true;
    }
    for (const choice of event.finishedChoices) this.#finished.add(choice);
    this.#isWhole = this.#finished.size >= this.#choices;
    return this.#isWhole;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }
}
