import type { EventNote } from '../catalog/upstream';

/**
 * Tells when an answer is whole. With one choice a stop reason says it; with several (`n`) each of them has its own, and
 * adapters, which keep no state, can only say which choice an event ended.
 */
export class FinishTracker {
  readonly #choices: number;
  readonly #finished = new Set<number>();
  #isWhole = false;

  constructor(choices: number) {
    this.#choices = choices;
  }

  /** Returns true from the event that ends the last choice. */
  note(event: EventNote): boolean {
    if (this.#isWhole) return true;
    // The protocol's own end replaces stop reasons that are missing. So do the counts behind the choices, because an upstream
    // that ignores `n` gives fewer choices.
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
