import type { FinishReason } from '../../catalog/answer';

/** The stop reasons of Messages (platform.claude.com, "Handling stop reasons", 2026-11). */
export const MESSAGES_WRITTEN_REASONS: Readonly<Record<FinishReason, string>> = {
  end: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  stop: 'stop_sequence',
  filter: 'refusal',
  pause: 'pause_turn',
  context: 'model_context_window_exceeded',
  broken: 'end_turn',
  unknown: 'end_turn',
};

/** The meaning of each stop reason: the inverse of MESSAGES_WRITTEN_REASONS. */
export const MESSAGES_STOP_REASONS: ReadonlyMap<string, FinishReason> = new Map(
  Object.entries(MESSAGES_WRITTEN_REASONS)
    .filter(([reason]) => reason !== 'unknown' && reason !== 'broken')
    .map(([reason, word]) => [word, reason as FinishReason]),
);

/** The error types of Messages by status (platform.claude.com, "Errors", 2026-11). */
export const ERROR_TYPES: Readonly<Record<number, string>> = {
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
