import type { AnswerEvent } from '../catalog/answer';

/** Returns the error of an answer that ends with a word that is no good end. */
export function brokenOff(word: string): AnswerEvent {
  return { is: 'error', error: { message: `The upstream broke off its answer: ${word}`, code: word } };
}
