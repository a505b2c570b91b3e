import type { AnswerError } from '../../catalog/answer';
import type { JsonObject } from '../../json-values';

/** Returns an upstream's error in the form that Messages has for this status. The message stays as it is. */
export function writeError(error: AnswerError, status: number, requestId: string): JsonObject {
  return envelope(error, typeFor(status) ?? typeOf(error), requestId);
}

/** Returns an error event. A stream's error has no status, so its type and code decide. */
export function streamedError(error: AnswerError, requestId: string): JsonObject {
  return envelope(error, typeOf(error), requestId);
}

function envelope({ message, code, param }: AnswerError, type: string, requestId: string): JsonObject {
  return {
    type: 'error',
    error: { type, message, ...(code !== undefined && { code }), ...(param !== undefined && { param }) },
    request_id: requestId,
  };
}

const BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** Returns the error type of a status, or undefined for a status below 400. */
function typeFor(status: number): string | undefined {
  if (status < 400) return undefined;
  return BY_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

const VENDORS: ReadonlySet<string> = new Set(Object.values(BY_STATUS));

/** Error types of Messages by the codes and types of other vendors. */
const BY_WORD: ReadonlyMap<string, string> = new Map([
  ['rate_limit_exceeded', 'rate_limit_error'],
  ['tokens', 'rate_limit_error'],
  ['requests', 'rate_limit_error'],
  ['insufficient_quota', 'billing_error'],
  ['invalid_api_key', 'authentication_error'],
  ['invalid_prompt', 'invalid_request_error'],
  ['context_length_exceeded', 'invalid_request_error'],
  ['server_overloaded', 'overloaded_error'],
  ['slow_down', 'overloaded_error'],
]);

function typeOf({ type = '', code = '' }: AnswerError): string {
  if (VENDORS.has(type)) return type;
  return BY_WORD.get(code) ?? BY_WORD.get(type) ?? 'api_error';
}
