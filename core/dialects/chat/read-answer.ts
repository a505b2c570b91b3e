import type { AnswerReader } from '../../catalog/answer';

export function openReader(): AnswerReader {
  throw new Error('not written yet');
}
