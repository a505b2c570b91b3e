import { asObject, asText } from '../json-values';
import type { AnswerError } from './answer';

/** Reads `{"error": {"message", "type", "code", "param"}}` and its bare forms, which some upstreams send. */
export function readUsualError(body: unknown): AnswerError {
  const outer = asObject(body) ?? {};
  const error = asObject(outer['error']) ?? outer;
  const message = asText(error['message']) || asText(outer['error']) || asText(outer['detail']) || asText(body);
  const textOf = (name: string) => asText(error[name]) || undefined;
  return {
    message: message || 'The upstream sent an error without a message.',
    type: textOf('type') ?? textOf('status'),
    code: textOf('code'),
    param: textOf('param'),
  };
}
