import type { AnswerBeginning, BodyEdit, ModelCall } from '../../core/catalog/upstream';

/**
 * Returns the edits with which an upstream continues a begun answer: the beginning becomes the last message, and the limits are
 * reduced to the tokens left.
 */
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
 * Joins a continuation to its beginning. The request omits the beginning's trailing white space, so the upstream may repeat it:
 * `follow` removes the part that the caller already has.
 */
export class Seam {
  #missing = '';

  /** `said` is the text that the caller has, `text` the part of it that the upstream was sent. */
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

/** The longest answer that is remembered. A longer one cannot be continued. */
const REMEMBERED_AT_MOST_CHARACTERS = 1_024 * 1_024;

/** The text of an answer so far; undefined once the answer contains anything but text. */
export class SaidText {
  #pieces: string[] = [];
  #characters = 0;
  #isAll = true;

  add(text: string): void {
    this.#characters += text.length;
    if (this.#characters > REMEMBERED_AT_MOST_CHARACTERS) this.giveUp();
    if (this.#isAll) this.#pieces.push(text);
  }

  /** Forgets the text, because the answer contains something else or is too long. */
  giveUp(): void {
    this.#isAll = false;
    this.#pieces = [];
  }

  get all(): string | undefined {
    return this.#isAll ? this.#pieces.join('') : undefined;
  }
}
