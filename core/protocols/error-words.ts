import type { AnswerError } from '../catalog/answer';

/** A kind of error: what each protocol of clients calls it, and the codes and types by which vendors name it. */
interface ErrorKind {
  /** The status that an error in a stream would have had. */
  readonly status: number;
  /** The error type of Messages (platform.claude.com, "Errors", 2026-11). */
  readonly messages: string;
  /** The type and the code of Chat and Responses (developers.openai.com, "Error codes", 2026-11). Absent: the vendor's own code. */
  readonly type: string;
  readonly code?: string;
  readonly words: readonly string[];
}

const TOO_LONG: ErrorKind = {
  status: 400,
  messages: 'invalid_request_error',
  type: 'invalid_request_error',
  // Codex compacts on this code (github.com/openai/codex, codex-api/src/sse/responses.rs, 2026-11).
  code: 'context_length_exceeded',
  words: [
    'context_length_exceeded',
    'context_window_exceeded',
    'model_context_window_exceeded',
    // github.com/ggml-org/llama.cpp, tools/server, 2026-11.
    'exceed_context_size_error',
  ],
};

/** Words in upper case are those of Google (google.rpc.Code), words that end in `Exception` those of Amazon (Converse, "Errors"). */
const KINDS: readonly ErrorKind[] = [
  TOO_LONG,
  {
    status: 429,
    messages: 'rate_limit_error',
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    words: [
      'rate_limit_error',
      'rate_limit_exceeded',
      'tokens',
      'requests',
      'RESOURCE_EXHAUSTED',
      'throttlingException',
    ],
  },
  {
    status: 402,
    messages: 'billing_error',
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    words: ['billing_error', 'insufficient_quota'],
  },
  {
    status: 529,
    messages: 'overloaded_error',
    type: 'server_error',
    // The code with which the vendor of Codex refuses under load (the same file).
    code: 'server_is_overloaded',
    words: [
      'overloaded_error',
      'server_overloaded',
      'server_is_overloaded',
      'slow_down',
      'UNAVAILABLE',
      'serviceUnavailableException',
      'modelNotReadyException',
    ],
  },
  {
    status: 401,
    messages: 'authentication_error',
    type: 'authentication_error',
    code: 'invalid_api_key',
    words: ['authentication_error', 'invalid_api_key', 'UNAUTHENTICATED'],
  },
  {
    status: 403,
    messages: 'permission_error',
    type: 'permission_error',
    words: ['permission_error', 'PERMISSION_DENIED', 'accessDeniedException'],
  },
  {
    status: 404,
    messages: 'not_found_error',
    type: 'not_found_error',
    words: ['not_found_error', 'NOT_FOUND', 'model_not_found', 'resourceNotFoundException'],
  },
  {
    status: 400,
    messages: 'invalid_request_error',
    type: 'invalid_request_error',
    words: [
      'invalid_request_error',
      'invalid_prompt',
      'INVALID_ARGUMENT',
      'FAILED_PRECONDITION',
      'validationException',
    ],
  },
  {
    status: 413,
    messages: 'request_too_large',
    type: 'invalid_request_error',
    words: ['request_too_large'],
  },
  {
    status: 504,
    messages: 'timeout_error',
    type: 'server_error',
    words: ['timeout_error', 'DEADLINE_EXCEEDED', 'modelTimeoutException'],
  },
  {
    status: 500,
    messages: 'api_error',
    type: 'server_error',
    words: ['api_error', 'server_error', 'INTERNAL', 'internalServerException', 'modelStreamErrorException'],
  },
];

const BY_WORD: ReadonlyMap<string, ErrorKind> = new Map(
  KINDS.flatMap((kind) => kind.words.map((word) => [word, kind] as const)),
);

/** The messages of vendors whose codes do not say that a call is too long, with numbers where they tell them. */
const TOO_LONG_MESSAGE = new RegExp(
  [
    // platform.claude.com "Context windows"; docs.aws.amazon.com "InvokeModel"; github.com/ollama/ollama, 2026-11.
    'prompt is too long|input is too long|prompt too long',
    // developers.openai.com, api-docs.deepseek.com, openrouter.ai/docs, docs.vllm.ai, docs.mistral.ai, 2026-11.
    "maximum context length|exceed(?:s|ed)? (?:the )?(?:model's )?(?:maximum )?context|context window",
    // ai.google.dev "Troubleshooting"; docs.x.ai "Models"; console.groq.com/docs/errors, 2026-11.
    'input token count.*exceeds the maximum|maximum prompt length|reduce the length of the messages',
    // docs.sglang.ai; github.com/ggml-org/llama.cpp; lmstudio.ai/docs, 2026-11.
    "longer than the model's context length|available context size|greater than the context length",
    // platform.moonshot.ai "Errors"; help.aliyun.com/model-studio "Error codes"; docs.z.ai "Errors" (1261), 2026-11.
    'exceeded model token limit|range of input length should be|prompt 超长',
  ].join('|'),
  'i',
);

/** How much of a message is searched. A message may quote the client's request, but the reason is at its beginning. */
const MOST_SEARCHED = 1_000;

/** Whether an error says that the call is longer than the model's context. */
export function isTooLong({ type = '', code = '', message }: AnswerError): boolean {
  if (BY_WORD.get(code) === TOO_LONG || BY_WORD.get(type) === TOO_LONG) return true;
  return TOO_LONG_MESSAGE.test(message.slice(0, MOST_SEARCHED));
}

/** Returns the kind of an error; undefined for words that no row has. */
export function kindOf(error: AnswerError): ErrorKind | undefined {
  return isTooLong(error) ? TOO_LONG : (BY_WORD.get(error.code ?? '') ?? BY_WORD.get(error.type ?? ''));
}

/** Returns what a Messages client is told of a call that is too long. Claude Code compacts on the first words of it. */
export function tooLongMessage({ message }: AnswerError): string {
  if (/prompt is too long: \d+ tokens > \d+ maximum/i.test(message)) return message;
  const numbers = [...message.slice(0, MOST_SEARCHED).matchAll(NUMBER)].map(([digits]) => numberOf(digits));
  const asked = Math.max(0, ...numbers);
  const said = MAXIMUM.exec(message)?.[1];
  const most = said === undefined ? Math.max(0, ...numbers.filter((each) => each < asked)) : numberOf(said);
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
  const kind = kindOf(error);
  const type = kind === TOO_LONG ? kind.type : (TYPES[status] ?? (status >= 500 ? 'server_error' : INVALID));
  const own = error.code ?? (kind === undefined && error.type !== type ? error.type : undefined);
  return { message: error.message, type, param: error.param ?? null, code: kind?.code ?? own ?? null };
}

const INVALID = 'invalid_request_error';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
};
