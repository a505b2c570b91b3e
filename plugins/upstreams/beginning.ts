import type { AnswerBeginning, BodyEdit, ModelCall } from '../../core/catalog/upstream';

/** What both protocols need to have an answer gone on with: it stands as the last message, and the limit is what is left of it. */
export function prefillEdits(
  { members }: ModelCall,
  { text, outputTokensLeft }: AnswerBeginning,
  limits: readonly string[],
): BodyEdit[] {
  const begun: BodyEdit = { member: 'messages', push: JSON.stringify({ role: 'assistant', content: text }) };
  if (outputTokensLeft === undefined) return [begun];
  const named = limits.filter((member) => members.has(member) && members.get(member) !== 'null');
  return [begun, ...named.map((member) => ({ member, set: String(outputTokensLeft) }))];
}

/**
 * The text that follows on a beginning whose white space at the end was left out of the request: what the caller has of it
 * already is not said again.
 */
export class Seam {
  #missing = '';

  /** `said` is what the caller has, `text` what the upstream was given of it. */
  begin(said: string, text: string): void {
    this.#missing = said.slice(text.length);
  }

  follow(text: string): string {
    let same = 0;
    while (same < this.#missing.length && same < text.length && this.#missing[same] === text[same]) same += 1;
    if (text.length > 0) this.#missing = same === text.length ? this.#missing.slice(same) : '';
    return text.slice(same);
  }
}

/** Longer answers are not remembered, and so not gone on with. */
const REMEMBERED_AT_MOST_CHARACTERS = 1_024 * 1_024;

/** The text that was said, as long as there was nothing else. */
export class SaidText {
  #pieces: string[] = [];
  #characters = 0;
  #isAll = true;

  add(text: string): void {
    this.#characters += text.length;
    if (this.#characters > REMEMBERED_AT_MOST_CHARACTERS) this.giveUp();
    if (this.#isAll) this.#pieces.push(text);
  }

  /** There was something that is not text. */
  giveUp(): void {
    this.#isAll = false;
    this.#pieces = [];
  }

  get all(): string | undefined {
    return this.#isAll ? this.#pieces.join('') : undefined;
  }
}
