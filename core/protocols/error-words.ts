import type { AnswerError } from '../catalog/answer';

/** Error codes and types by which vendors report that a call is too long. The source of the last code: github.com/ggml-org/llama.cpp, tools/server, 2026-11. */
const TOO_LONG: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'context_window_exceeded',
  'model_context_window_exceeded',
  'exceed_context_size_error',
]);

/**
 * Error codes and types by which vendors report other errors than a too long call, by HTTP status. Upper-case words are Google's
 * (google.rpc.Code), and words that end in `Exception` are Amazon's (Converse, "Errors").
 */
const WORDS: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid_request_error', 'invalid_prompt', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'validationException'],
  401: ['authentication_error', 'invalid_api_key', 'UNAUTHENTICATED'],
  402: ['billing_error', 'insufficient_quota'],
  403: ['permission_error', 'PERMISSION_DENIED', 'accessDeniedException'],
  404: ['not_found_error', 'NOT_FOUND', 'model_not_found', 'resourceNotFoundException'],
  413: ['request_too_large'],
  429: ['rate_limit_error', 'rate_limit_exceeded', 'tokens', 'requests', 'RESOURCE_EXHAUSTED', 'throttlingException'],
  500: ['api_error', 'server_error', 'INTERNAL', 'internalServerException', 'modelStreamErrorException'],
  504: ['timeout_error', 'DEADLINE_EXCEEDED', 'modelTimeoutException'],
  529: [
    ...['overloaded_error', 'server_overloaded', 'server_is_overloaded', 'slow_down', 'UNAVAILABLE'],
    ...['serviceUnavailableException', 'modelNotReadyException'],
  ],
};

const STATUSES: ReadonlyMap<string, number> = new Map(
  Object.entries(WORDS).flatMap(([status, words]) => words.map((word) => [word, Number(status)] as const)),
);

/** Error messages by which vendors report a call that is too long if their error codes do not show that. Some messages contain numbers of tokens. */
const TOO_LONG_MESSAGE = new RegExp(
  [
    // The sources of the next error messages: platform.claude.com "Context windows"; docs.aws.amazon.com "InvokeModel"; github.com/ollama/ollama,
    // 2026-11.
    'prompt is too long|input is too long|prompt too long',
    // The sources of the next error messages: developers.openai.com, api-docs.deepseek.com, openrouter.ai/docs, docs.vllm.ai, docs.mistral.ai,
    // 2026-11.
    "maximum context length|exceed(?:s|ed)? (?:the )?(?:model's )?(?:maximum )?context|context window",
    // The sources of the next error messages: ai.google.dev "Troubleshooting"; docs.x.ai "Models"; console.groq.com/docs/errors, 2026-11.
    'input token count.*exceeds the maximum|maximum prompt length|reduce the length of the messages',
    // The sources of the next error messages: docs.sglang.ai; github.com/ggml-org/llama.cpp; lmstudio.ai/docs, 2026-11.
    "longer than the model's context length|available context size|greater than the context length",
    // The sources of the next error messages: platform.kimi.ai/docs/api/errors, 2026-11; github.com/QwenLM/qwen-code, issue 2068, 2026-03; docs.z.ai
    // "Errors" (1261), 2026-11.
    'exceeded model token limit|input token length too long|range of input length should be|prompt 超长',
  ].join('|'),
  'i',
);

/** How many characters of an error message are searched. A message may quote the client's request, but the reason is at its beginning. */
export const MAX_SEARCHED = 1_000;

/** Returns whether an error means that the call is longer than the model's context window. */
export function isTooLong({ type = '', code = '', message }: AnswerError): boolean {
  return TOO_LONG.has(code) || TOO_LONG.has(type) || TOO_LONG_MESSAGE.test(message.slice(0, MAX_SEARCHED));
}

/** Returns the status that an error in a stream would have had; undefined for an error whose code and type are unknown. */
export function statusOf(error: AnswerError): number | undefined {
  return isTooLong(error) ? 400 : (STATUSES.get(error.code ?? '') ?? STATUSES.get(error.type ?? ''));
}

/** Returns the message that a Messages client gets for a call that is too long. Claude Code shortens its conversation when it sees the first words. */
export function tooLongMessage({ message }: AnswerError): string {
  if (/prompt is too long: \d+ tokens > \d+ maximum/i.test(message)) return message;
  const numbers = [...message.slice(0, MAX_SEARCHED).matchAll(NUMBER)].map(([digits]) => numberOf(digits));
  const asked = Math.max(0, ...numbers);
  const matched = MAXIMUM.exec(message)?.[1];
  const most = matched === undefined ? Math.max(0, ...numbers.filter((each) => each < asked)) : numberOf(matched);
  return most === 0 || most >= asked
    ? `prompt is too long: ${message}`
    : `prompt is too long: ${asked} tokens > ${most} maximum`;
}

const NUMBER = /\d[\d,]{2,}/g;
const MAXIMUM = /(?:maximum|limit|context)\D{0,40}?(\d[\d,]{2,})/i;

function numberOf(digits: string): number {
  return Number(digits.replaceAll(',', ''));
}

/** Returns an error in the form of Chat and Responses, with the vendor's own message. */
export function openaiError(error: AnswerError, status: number) {
  const type = TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  const known = statusOf(error);
  const own = error.code ?? (known === undefined && error.type !== type ? error.type : undefined);
  const code = isTooLong(error) ? TOO_LONG_CODE : (CODES[known ?? 0] ?? own ?? null);
  return { message: error.message, type, param: error.param ?? null, code };
}

/** The error types of Chat and Responses by status. `CODES` has the codes that programs read (developers.openai.com, "Error codes", 2026-11). */
const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};

/**
 * The error code at which Codex shortens its conversation. Codex also knows the code `server_is_overloaded` (github.com/openai/codex,
 * codex-api/src/sse/responses.rs, 2026-11).
 */
const TOO_LONG_CODE = 'context_length_exceeded';

const CODES: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  402: 'insufficient_quota',
  429: 'rate_limit_exceeded',
  529: 'server_is_overloaded',
};
