/**
 * The one catalogue of errors the platform itself produces: code -> HTTP status, envelope type, whether a repeat can help.
 * `docs/errors.md` and the OpenAPI document say the same; a test holds them equal.
 */
export const ERRORS = {
  INVALID_JSON: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The body is not valid JSON.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'This is not HTTP/1.1 as it should be.',
  },
  INVALID_FIELD: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'A field is missing, repeated or has a wrong value; `param` names it.',
  },
  MODEL_NOT_PRICED: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The model is unknown or has no price, or the call asks for something that has none.',
  },
  MODEL_AMBIGUOUS: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The name fits several models equally well; `details.models` lists them.',
  },
  MODEL_NOT_ALLOWED: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'This key may not call this model.',
  },
  MODEL_NOT_SUPPORTED: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'No upstream serves this model here: not at this direct address, or only in the other protocol.',
  },
  NOT_TRANSLATABLE: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary:
      'Only upstreams that do not speak this protocol could be asked, and `param` cannot be carried over into theirs.',
  },
  SELECTION_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary:
      'The selection does not name exactly one of `quoteId`, `offeringId` and `requirements`, or one of them is malformed.',
  },
  REQUIREMENTS_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The requirements of a sandbox name something unknown or contradict themselves.',
  },
  QUOTE_INVALID: { status: 400, type: 'invalid_request_error', retryable: false, summary: 'There is no such quote.' },
  QUOTE_EXPIRED: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The quote is no longer valid; ask for a new one.',
  },
  POLICY_UNSUPPORTED: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The offering does not support what the policy asks for.',
  },
  IDEMPOTENCY_KEY_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The idempotency key is missing, empty, repeated or longer than 160 characters.',
  },
  METADATA_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The metadata is not an object, is too large, or looks like it holds a secret.',
  },
  COMMAND_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The command or one of its settings is not valid.',
  },
  PATH_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: "The path is not valid, or leads out of the sandbox's own files.",
  },
  PORT_INVALID: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The port is not one that a sandbox can open.',
  },
  INVALID_API_KEY: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    summary: 'The API key is missing, malformed, unknown or revoked.',
  },
  API_KEY_EXPIRED: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    summary: 'The API key, or the secret of it that was replaced, has expired.',
  },
  NOT_SIGNED_IN: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    summary: 'Nobody is signed in to the console, or the session has ended.',
  },
  SIGN_IN_FAILED: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    summary: 'Address and password do not belong together, or the link was used or is too old.',
  },
  INSUFFICIENT_BALANCE: {
    status: 402,
    type: 'Payment Required',
    retryable: false,
    summary: "The account's available balance does not cover the most this call can cost.",
  },
  KEY_LIMIT_EXCEEDED: {
    status: 402,
    type: 'Payment Required',
    retryable: false,
    summary: "The key's own spending limit does not cover the most this call can cost.",
  },
  FORBIDDEN: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    summary: 'Not allowed with these credentials.',
  },
  ADDRESS_NOT_ALLOWED: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    summary: 'The API key may not be used from this address.',
  },
  OPERATOR_ROLE_NEEDED: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    summary: "The operator token's role does not allow this; `details.needed` names the role that does.",
  },
  NOT_FOUND: { status: 404, type: 'not_found_error', retryable: false, summary: 'There is nothing at this address.' },
  ENDPOINT_NOT_IMPLEMENTED: {
    status: 404,
    type: 'not_found_error',
    retryable: false,
    summary: 'This endpoint of the protocol is not offered.',
  },
  OFFERING_NOT_FOUND: {
    status: 404,
    type: 'not_found_error',
    retryable: false,
    summary: 'There is no such offering, or it is not available.',
  },
  NO_MATCHING_OFFERING: {
    status: 404,
    type: 'not_found_error',
    retryable: false,
    summary: 'No offering meets the requirements at the price.',
  },
  KEPT_OBJECT_NOT_FOUND: {
    status: 404,
    type: 'not_found_error',
    retryable: false,
    summary:
      'The call names something at the vendor that this account has not got through this gateway; `param` names it.',
  },
  SANDBOX_NOT_FOUND: { status: 404, type: 'not_found_error', retryable: false, summary: 'There is no such sandbox.' },
  FILE_NOT_FOUND: {
    status: 404,
    type: 'not_found_error',
    retryable: false,
    summary: 'There is no such file in the sandbox.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The address exists with other methods; `Allow` lists them.',
  },
  BODY_TIMEOUT: {
    status: 408,
    type: 'invalid_request_error',
    retryable: true,
    summary: 'The body did not arrive in time.',
  },
  CONFLICT: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The request contradicts what is already there.',
  },
  OFFERING_CHANGED: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The offering has changed since the quote; ask for a new one.',
  },
  QUOTE_USED: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The quote has been used by another creation.',
  },
  ACTIVE_INSTANCE_LIMIT: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The account has as many active sandboxes as it may.',
  },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The idempotency key was used with another request; for a sandbox, with another selection or policy.',
  },
  IDEMPOTENCY_KEY_IN_USE: {
    status: 409,
    type: 'conflict_error',
    retryable: true,
    summary: 'The first call with this idempotency key still runs; `Retry-After` says when to ask again.',
  },
  ALREADY_CHARGED: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The first call with this idempotency key was charged; `details` has its request id and cost.',
  },
  SUPPLIER_UNAVAILABLE: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The supplier cannot create a sandbox now.',
  },
  STATE_CHANGE_IN_PROGRESS: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: "Another change of the sandbox's state has not ended yet.",
  },
  SANDBOX_NOT_RUNNING: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The sandbox is not running.',
  },
  NOT_SUPPORTED: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: "The sandbox's offering does not support this. In a model call: 400, `param` names what is not served.",
  },
  CONFIGURATION_INVALID: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The configuration has mistakes (`details.problems`); the one in force stays.',
  },
  CONFIGURATION_FROM_FILES: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'The configuration comes from files: change them, and reload.',
  },
  CHANGE_NEEDS_FORCE: {
    status: 409,
    type: 'conflict_error',
    retryable: false,
    summary: 'Something speaks against this change (`details.objections`); it is applied only with `force`.',
  },
  SANDBOX_FINAL: { status: 410, type: 'gone_error', retryable: false, summary: 'The sandbox has ended.' },
  PRECONDITION_FAILED: {
    status: 412,
    type: 'conflict_error',
    retryable: false,
    summary: 'What is to be changed has changed since the version that `If-Match` names.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The body has more than 20,971,520 bytes, as it was sent or when it is decoded.',
  },
  FILE_TOO_LARGE: {
    status: 413,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The file is larger than may be moved in one request.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The body must be application/json, in a content encoding that is accepted.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The `Expect` header asks for something other than `100-continue`.',
  },
  UPSTREAM_RATE_LIMITED: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'Every upstream that could answer is rate limited.',
  },
  KEY_RATE_LIMITED: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: "The key's own limit of calls or tokens by the minute; `Retry-After` says when to come back.",
  },
  CONCURRENCY_LIMIT: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'The key or its account has too many calls under way at this node; `details` says which limit.',
  },
  SIGN_IN_SLOWED: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'Too many attempts to sign in; `Retry-After` says when the next one is taken.',
  },
  ADMIN_TOKEN_SLOWED: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'Too many wrong operator tokens from this address; a right one is taken at any time.',
  },
  RATE_LIMITED: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'Too many sandboxes are created too fast; keep the idempotency key and repeat later.',
  },
  COMMAND_LIMIT: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    summary: 'As many commands of the sandbox or the account run, or are followed, as may at once.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    type: 'invalid_request_error',
    retryable: false,
    summary: 'The head of the request has more than 16 KiB.',
  },
  INTERNAL_ERROR: { status: 500, type: 'server_error', retryable: true, summary: 'A fault of the gateway itself.' },
  ALL_PROVIDERS_FAILED: {
    status: 502,
    type: 'server_error',
    retryable: true,
    summary: 'Every upstream that could answer failed; `details.attempts` says how.',
  },
  SUPPLIER_ERROR: {
    status: 502,
    type: 'server_error',
    retryable: true,
    summary: 'The supplier that runs the sandbox failed.',
  },
  REPORT_UNAVAILABLE: {
    status: 502,
    type: 'server_error',
    retryable: true,
    summary: "A vendor's report of usage or cost could not be read; the message says why.",
  },
  LEDGER_UNAVAILABLE: {
    status: 503,
    type: 'server_error',
    retryable: true,
    summary: 'The ledger cannot be asked now, and no call is served unbilled.',
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    type: 'server_error',
    retryable: true,
    summary: 'The database cannot be reached now; `Retry-After` says when to ask again.',
  },
  SANDBOX_ELSEWHERE: {
    status: 503,
    type: 'server_error',
    retryable: true,
    summary: 'Another node of the gateway has the sandbox, and this one cannot reach it: repeat the request there.',
  },
  OVERLOADED: {
    status: 503,
    type: 'server_error',
    retryable: true,
    summary: 'The gateway has as much work as it may take.',
  },
  DRAINING: { status: 503, type: 'server_error', retryable: true, summary: 'This process is shutting down.' },
  UPSTREAM_TIMEOUT: {
    status: 504,
    type: 'server_error',
    retryable: true,
    summary: 'Every upstream that could answer timed out.',
  },
  SUPPLIER_TIMEOUT: {
    status: 504,
    type: 'server_error',
    retryable: true,
    summary: 'The supplier that runs the sandbox did not answer in time.',
  },
} as const satisfies Record<string, ErrorKind>;

/** What a code means to clients. */
export interface ErrorKind {
  /** HTTP status, 400 to 599. */
  readonly status: number;
  /** One of the types that the catalogue has: the SDKs know them. */
  readonly type: string;
  /** The same again can succeed. */
  readonly retryable: boolean;
  /** What the caller is told where the one who throws says nothing better. */
  readonly summary: string;
}

/** A code of the catalogue. */
export type ErrorCode = keyof typeof ERRORS;

/** A code that a package has declared; only `declareErrors` makes one. */
export type DeclaredCode = string & { readonly declared: unique symbol };

const declared = new Map<string, ErrorKind>();

/** The errors of a package. */
export interface DeclaredErrors<Code extends string> {
  /** Makes one of them: `throw fail('OFFICE_CLOSED')`. */
  fail(code: Code, options?: ErrorOptions): GatewayError;
  /** For `errors` of a route that answers with them. */
  readonly codes: readonly DeclaredCode[];
}

/**
 * Adds the errors of a package to the catalogue, and so to the OpenAPI documents:
 * `const { fail } = declareErrors({ OFFICE_CLOSED: { status: 403, … } })`.
 *
 * @throws when a code is taken, or cannot be one
 */
export function declareErrors<const Code extends string>(
  errors: Readonly<Record<Code, ErrorKind>>,
): DeclaredErrors<Code> {
  for (const [code, kind] of Object.entries<ErrorKind>(errors)) {
    const objection = objectionTo(code, kind);
    if (objection !== undefined) throw new Error(`the error ${code} cannot be declared: ${objection}`);
  }
  for (const [code, kind] of Object.entries<ErrorKind>(errors)) declared.set(code, kind);
  return {
    fail: (code, options) => fail(code as string as DeclaredCode, options),
    codes: Object.keys(errors) as DeclaredCode[],
  };
}

const CODE = /^[A-Z][A-Z0-9_]{2,63}$/;

function objectionTo(code: string, { status, type, retryable, summary }: ErrorKind): string | undefined {
  if (!CODE.test(code)) return 'a code is 3 to 64 capital letters, digits and underscores, a letter first';
  if (Object.hasOwn(ERRORS, code) || declared.has(code)) return 'the code is taken; give it another name';
  if (!Number.isInteger(status) || status < 400 || status > 599) return '`status` is 400 to 599';
  const types = [...new Set(Object.values(ERRORS).map((kind) => kind.type))];
  if (!types.some((known) => known === type)) return `\`type\` is one of ${types.join(', ')}`;
  if (typeof retryable !== 'boolean') return '`retryable` is true or false';
  if (typeof summary !== 'string' || summary === '') return '`summary` has the words for the caller';
  return undefined;
}

/** All errors there are by now: the catalogue, and what packages have declared. */
export function allErrors(): ReadonlyMap<string, ErrorKind> {
  return new Map<string, ErrorKind>([...Object.entries(ERRORS), ...declared]);
}

/** @throws when nobody has declared the code */
export function kindOf(code: ErrorCode | DeclaredCode): ErrorKind {
  const kind = declared.get(code) ?? ERRORS[code as ErrorCode];
  if (kind === undefined) throw new Error(`there is no error ${code}: declare it with declareErrors`);
  return kind;
}

/** What one occurrence of an error says beside its kind. */
export interface ErrorOptions {
  /** What to tell the caller; the catalogue's summary unless given. Never a secret, never content of the call. */
  readonly message?: string;
  /** The field of the request that is at fault, as a path such as `messages[0].role`. */
  readonly param?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  /** 400 in place of the catalogue's status and type: the request itself asks for what is not served. */
  readonly status?: 400;
  /** In place of the catalogue's, where this case is different. */
  readonly retryable?: boolean;
  /** Headers of this answer beside the envelope's own, such as `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error the caller is told about. Everything else that is thrown becomes INTERNAL_ERROR. */
export class GatewayError extends Error {
  readonly status: number;
  readonly type: string;
  readonly retryable: boolean;

  constructor(
    readonly code: ErrorCode | DeclaredCode,
    readonly options: ErrorOptions = {},
  ) {
    const kind = kindOf(code);
    super(options.message ?? kind.summary, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.status = options.status ?? kind.status;
    this.type = options.status === undefined ? kind.type : ERRORS.INVALID_FIELD.type;
    this.retryable = options.retryable ?? kind.retryable;
  }
}

/** Makes an error of the catalogue: `throw fail('FORBIDDEN', { message: '…' })`. */
export function fail(code: ErrorCode | DeclaredCode, options: ErrorOptions = {}): GatewayError {
  return new GatewayError(code, options);
}

/** Names and messages may hold what the caller sent; an answer stays small whatever that was. */
const LONGEST_MESSAGE = 1_000;
const LONGEST_PARAM = 200;

export function shorten(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Returns the envelope of docs/contract.md, section 3, which the SDKs of both protocols read. */
export function errorEnvelope(error: GatewayError, requestId: string) {
  const { param, details } = error.options;
  return {
    type: 'error',
    request_id: requestId,
    error: {
      type: error.type,
      code: error.code,
      message: shorten(error.message, LONGEST_MESSAGE),
      param: param === undefined ? null : shorten(param, LONGEST_PARAM),
      details: details ?? {},
      retryable: error.retryable,
    },
  };
}
