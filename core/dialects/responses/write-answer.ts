import type { AnswerError, AnswerWriter, WrittenCall } from '../../catalog/answer';
import type { JsonObject } from '../../json-values';

export function openWriter(_: WrittenCall): AnswerWriter {
  throw new Error('not written yet');
}

export function writeError(_: AnswerError, _status: number, _requestId: string): JsonObject {
  throw new Error('not written yet');
}
