import { asObject } from '../../base/json-values';
import type { AnswerEvent, AnswerReader } from '../../catalog/answer';
import { readUsualError } from '../../catalog/upstream';
import { readEmbeddingsUsage } from './usage';

/** Reads answers of Embeddings, which are never streamed and have no output tokens. */
export class EmbeddingsReader implements AnswerReader {
  event(): readonly AnswerEvent[] {
    return [];
  }

  body(body: unknown): readonly AnswerEvent[] {
    const answer = asObject(body) ?? {};
    const { error } = answer;
    if (error !== undefined && error !== null && error !== '')
      return [{ kind: 'error', error: readUsualError(answer) }];
    return [{ kind: 'usage', usage: readEmbeddingsUsage(answer), isFinal: true }, { kind: 'end' }];
  }

  end(): readonly AnswerEvent[] {
    return [];
  }
}
