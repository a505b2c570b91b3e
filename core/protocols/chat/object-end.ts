/** Follows the JSON of an object that arrives in pieces, and knows when it is complete. It reads each character once. */
export class ObjectEnd {
  #depth = 0;
  #hasBegun = false;
  #isInString = false;
  #isEscaped = false;
  /** Whether there is text before or after the object. */
  #isMore = false;

  get isWhole(): boolean {
    return this.#hasBegun && this.#depth === 0 && !this.#isMore;
  }

  add(text: string): void {
    for (const character of text) {
      if (this.#isInString) this.#continueString(character);
      else if (this.#depth > 0) this.#continueObject(character);
      else if (character.trim() !== '') this.#begin(character);
    }
  }

  #begin(character: string): void {
    if (this.#hasBegun || character !== '{') this.#isMore = true;
    else this.#depth = 1;
    this.#hasBegun = true;
  }

  #continueObject(character: string): void {
    if (character === '"') this.#isInString = true;
    else if (character === '{' || character === '[') this.#depth += 1;
    else if (character === '}' || character === ']') this.#depth -= 1;
  }

  #continueString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}
