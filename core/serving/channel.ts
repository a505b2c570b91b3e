/** A numbered question, or the answer to one. */
export type Message =
  | { readonly question: string; readonly number: number; readonly given?: unknown }
  | { readonly answerTo: number; readonly value?: unknown };

export type Answers = Readonly<Record<string, (given: unknown) => unknown>>;

/** Questions and answers between the primary process and one worker. */
export class Channel {
  readonly #send: (message: Message) => void;
  #answers: Answers;
  readonly #waiting = new Map<number, (value: unknown) => void>();
  #asked = 0;
  #isOpen = true;

  constructor(send: (message: Message) => void, answers: Answers = {}) {
    this.#send = send;
    this.#answers = answers;
  }

  /** Sets what the other process may ask from now on. */
  answer(answers: Answers): void {
    this.#answers = answers;
  }

  /** Asks the other process. Returns undefined if it has no answer, or ends before it answers. */
  ask(question: string, given?: unknown): Promise<unknown> {
    return new Promise((resolve) => {
      if (!this.#isOpen) return resolve(undefined);
      const number = ++this.#asked;
      this.#waiting.set(number, resolve);
      this.#send({ question, number, given });
    });
  }

  /** Handles a message of the other process. */
  async take(message: Message): Promise<void> {
    if ('answerTo' in message) {
      this.#waiting.get(message.answerTo)?.(message.value);
      this.#waiting.delete(message.answerTo);
      return;
    }
    const value = await this.#answers[message.question]?.(message.given);
    this.#send({ answerTo: message.number, value });
  }

  /** Answers open questions with undefined, because the other process has ended. */
  close(): void {
    this.#isOpen = false;
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }
}
