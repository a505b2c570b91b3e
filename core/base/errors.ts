/** The messages of the gateway's own errors, by HTTP status and code. `docs/errors.md` and the OpenAPI document repeat them. */
const SUMMARIES = {
  400: {
    INVALID_JSON: 'The body is not valid JSON.',
    MALFORMED_REQUEST: 'The request is not valid HTTP/1.1.',
    INVALID_FIELD: 'A field is missing, repeated or has a wrong value; `param` names it.',
    MODEL_NOT_PRICED:
      'The model is unknown or has no price, or the call asks for something without one that is refused here.',
    MODEL_AMBIGUOUS: 'The name matches several models equally well. Send one of `details.models`.',
    MODEL_NOT_ALLOWED: 'This key may not call this model.',
    TOO_MANY_LIMITED_TAGS: 'More than two tags of the call have a budget. Send fewer of them.',
    NO_CANDIDATE_ALLOWED:
      'No upstream may serve the call under its demands; `details.excluded` has the fact of each, or `param` the member of the body.',
    MODEL_NOT_SUPPORTED: 'No upstream serves this model at this address or in this protocol.',
    NOT_TRANSLATABLE:
      'Only upstreams of another protocol serve this model, and `param` cannot be translated into it. Remove the field or use another model.',
    SELECTION_INVALID:
      'The selection does not name exactly one of `quoteId`, `offeringId` and `requirements`, or one of them is malformed.',
    REQUIREMENTS_INVALID: 'The requirements of the sandbox have an unknown value, or contradict each other.',
    QUOTE_INVALID: 'There is no such quote.',
    QUOTE_EXPIRED: 'The quote is no longer valid; ask for a new one.',
    POLICY_UNSUPPORTED: 'The offering does not support what the policy asks for.',
    IDEMPOTENCY_KEY_INVALID: 'The idempotency key is missing, empty, repeated or longer than 160 characters.',
    METADATA_INVALID: 'The metadata is not an object, is too large, or seems to contain a secret.',
    COMMAND_INVALID: 'The command or one of its settings is not valid.',
    PATH_INVALID: "The path is not valid, or is outside the sandbox's own files.",
    PORT_INVALID: 'A sandbox cannot open this port.',
  },
  401: {
    INVALID_API_KEY: 'The API key is missing, malformed, unknown or revoked.',
    API_KEY_EXPIRED: 'The API key has expired, or this secret was replaced and its grace period is over.',
    NOT_SIGNED_IN: 'The request has no valid console session. Sign in again.',
    SIGN_IN_FAILED: 'Wrong e-mail address or password, or the sign-in link has expired or was already used.',
  },
  402: {
    INSUFFICIENT_BALANCE: "The account's available balance does not cover the most this call can cost.",
    KEY_LIMIT_EXCEEDED: "The key's own spending limit does not cover the most this call can cost.",
    BUDGET_EXCEEDED: 'A budget does not cover the most this can cost; `details` names it and says when it resets.',
  },
  403: {
    FORBIDDEN: 'These credentials do not allow this request.',
    ADDRESS_NOT_ALLOWED: 'The API key may not be used from this address.',
    OPERATOR_ROLE_NEEDED: "The operator token's role does not allow this; `details.needed` names the role that does.",
  },
  404: {
    NOT_FOUND: 'No resource exists at this address.',
    ENDPOINT_NOT_IMPLEMENTED: 'The gateway does not implement this endpoint of the protocol.',
    OFFERING_NOT_FOUND: 'The offering does not exist, or is not available.',
    NO_MATCHING_OFFERING: 'No offering meets the requirements at or below the maximum price.',
    KEPT_OBJECT_NOT_FOUND:
      'The object that `param` names does not exist at the vendor for this account, or was not created through this gateway.',
    SANDBOX_NOT_FOUND: 'There is no such sandbox.',
    FILE_NOT_FOUND: 'There is no such file in the sandbox.',
  },
  405: {
    METHOD_NOT_ALLOWED: 'The address does not accept this method; `Allow` lists the methods that it accepts.',
  },
  408: {
    BODY_TIMEOUT: 'The body did not arrive in time.',
  },
  409: {
    CONFLICT: 'The request conflicts with the current state of the resource.',
    OFFERING_CHANGED: 'The offering has changed since the quote; ask for a new one.',
    QUOTE_USED: 'The quote has been used by another creation.',
    ACTIVE_INSTANCE_LIMIT:
      'The account has reached its limit of active sandboxes. End one, or ask the operator to raise the limit.',
    IDEMPOTENCY_CONFLICT:
      'The idempotency key was used with another request; for a sandbox, with another selection or policy.',
    IDEMPOTENCY_KEY_IN_USE: 'The first call with this idempotency key is still running; retry after `Retry-After`.',
    ALREADY_CHARGED: 'The first call with this idempotency key was charged; `details` has its request id and cost.',
    SUPPLIER_UNAVAILABLE: 'The supplier cannot create a sandbox now.',
    STATE_CHANGE_IN_PROGRESS: "Another change of the sandbox's state is still in progress. Retry later.",
    SANDBOX_NOT_RUNNING: 'The sandbox is not running.',
    NOT_SUPPORTED:
      "The sandbox's offering does not support this. In a model call: 400, and `param` names the unsupported field.",
    CONFIGURATION_INVALID:
      'The configuration is not valid: see `details.problems`. The active configuration is unchanged.',
    CONFIGURATION_FROM_FILES: 'The configuration comes from files. Edit the files and reload.',
    CHANGE_NEEDS_FORCE: 'The change has objections (`details.objections`). Send `force` to apply it anyway.',
  },
  410: {
    SANDBOX_FINAL: 'The sandbox has ended.',
  },
  412: {
    PRECONDITION_FAILED:
      'The resource has changed since the version that `If-Match` names. Read it again and repeat the change.',
  },
  413: {
    BODY_TOO_LARGE: 'The body has more than 20,971,520 bytes, as sent or after decoding.',
    FILE_TOO_LARGE: 'The file is larger than one request may transfer.',
  },
  415: {
    UNSUPPORTED_MEDIA_TYPE: 'The body must be application/json in a supported content encoding.',
  },
  417: {
    EXPECTATION_FAILED: 'The `Expect` header asks for something other than `100-continue`.',
  },
  429: {
    UPSTREAM_RATE_LIMITED: 'Every upstream of this model is rate limited. Retry later.',
    KEY_RATE_LIMITED:
      'The key has reached its limit of calls, tokens or API requests per minute; retry after `Retry-After`.',
    TOO_MANY_TAGS:
      'Calls of the account have named too many values of tags with a budget within the last hour; retry after `Retry-After`.',
    CONCURRENCY_LIMIT: 'The key or its account has too many concurrent calls at this node; `details` names the limit.',
    SIGN_IN_SLOWED: 'Too many attempts to sign in; retry after `Retry-After`.',
    ADMIN_TOKEN_SLOWED: 'Too many wrong operator tokens from this address. A valid token still works.',
    RATE_LIMITED:
      'The account makes too many sandboxes or API keys. Retry after `Retry-After`, with the same idempotency key.',
    COMMAND_LIMIT: 'The sandbox or the account has reached its limit of running or followed commands.',
  },
  431: {
    HEADERS_TOO_LARGE: 'The request line and headers have more than 16 KiB.',
  },
  500: {
    INTERNAL_ERROR: 'An internal error of the gateway. Report the request id if it persists.',
  },
  502: {
    ALL_PROVIDERS_FAILED: 'Every upstream that was tried failed; `details.attempts` lists the attempts.',
    SUPPLIER_ERROR: 'The supplier of the sandbox returned an error.',
    REPORT_UNAVAILABLE: "A vendor's report or a public list of prices could not be read; see the message.",
  },
  503: {
    LEDGER_UNAVAILABLE: 'The ledger is unavailable, and the gateway serves no unbilled calls. Retry later.',
    DATABASE_UNAVAILABLE: 'The database is unavailable; retry after `Retry-After`.',
    SANDBOX_ELSEWHERE: 'Another node runs the sandbox, and this node cannot reach it. Send the request to that node.',
    OVERLOADED: 'The gateway is at its capacity. Retry later.',
    DRAINING: 'This process is stopping. Retry at another node.',
  },
  504: {
    UPSTREAM_TIMEOUT: 'Every upstream that was tried timed out.',
    SUPPLIER_TIMEOUT: 'The supplier of the sandbox did not answer in time.',
  },
} as const;

/** The `type` in the error envelope by HTTP status, because the SDKs know these types. All other statuses have `server_error`. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'Payment Required',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'invalid_request_error',
  409: 'conflict_error',
  410: 'gone_error',
  412: 'conflict_error',
  413: 'invalid_request_error',
  415: 'invalid_request_error',
  417: 'invalid_request_error',
  429: 'rate_limit_error',
  431: 'invalid_request_error',
};
const OTHER_TYPE = 'server_error';

/** The statuses of errors that the client may retry: the same request can succeed later. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 429]);
/** The code of a conflict that the client may retry, because the first call with the same Idempotency-Key may have ended before the retry. */
const TEMPORARY_CONFLICT = 'IDEMPOTENCY_KEY_IN_USE';

type Summaries = typeof SUMMARIES;

/** The code of an error in the gateway's own catalog. */
export type ErrorCode = { [Status in keyof Summaries]: keyof Summaries[Status] }[keyof Summaries];

/** The catalog of the gateway's own errors, by code. */
export const ERRORS = Object.fromEntries(
  Object.entries(SUMMARIES).flatMap(([status, summaries]) =>
    Object.entries(summaries).map(([code, summary]) => [code, kindIn(Number(status), code, summary)]),
  ),
) as Readonly<Record<ErrorCode, ErrorKind>>;

function kindIn(status: number, code: string, summary: string): ErrorKind {
  const retryable = status >= 500 || TEMPORARY.has(status) || code === TEMPORARY_CONFLICT;
  return { status, type: TYPES[status] ?? OTHER_TYPE, retryable, summary };
}

/** What an error code means for clients. */
export interface ErrorKind {
  /** HTTP status, 400 to 599. */
  readonly status: number;
  /** One of the error types in the gateway's catalog, because the SDKs know only these. */
  readonly type: string;
  readonly retryable: boolean;
  /** The message for clients if the code that throws the error gives no better one. */
  readonly summary: string;
}

/** An error code that a package has declared. Only `declareErrors` makes one. */
export type DeclaredCode = string & { readonly declared: unique symbol };

const declared = new Map<string, ErrorKind>();

/** What `declareErrors` returns for the errors of a package. */
export interface DeclaredErrors<Code extends string> {
  /** Makes an error with a code of the package: `throw fail('OFFICE_CLOSED')`. */
  fail(code: Code, options?: ErrorOptions): GatewayError;
  /** The declared codes, for the `errors` of a route that answers with them. */
  readonly codes: readonly DeclaredCode[];
}

/**
 * Adds the errors of a package to the catalog and thereby to the OpenAPI documents: `const { fail } = declareErrors({ OFFICE_CLOSED: {
 * status: 403, … } })`.
 * @throws when a code is taken or not valid
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
  if (!CODE.test(code))
    return 'a code must have 3 to 64 capital letters, digits and underscores, and begin with a letter';
  if (Object.hasOwn(ERRORS, code) || declared.has(code)) return 'the code exists already; choose another name';
  if (!Number.isInteger(status) || status < 400 || status > 599) return '`status` must be from 400 to 599';
  const types = [...new Set([...Object.values(TYPES), OTHER_TYPE])];
  if (!types.includes(type)) return `\`type\` must be one of ${types.join(', ')}`;
  if (typeof retryable !== 'boolean') return '`retryable` must be true or false';
  if (typeof summary !== 'string' || summary === '') return '`summary` must be the message for the caller, not empty';
  return undefined;
}

/** Returns all errors known so far: those of the catalog and those that packages have declared. */
export function allErrors(): ReadonlyMap<string, ErrorKind> {
  return new Map<string, ErrorKind>([...Object.entries(ERRORS), ...declared]);
}

/** Returns the meaning of a code. @throws when the code was never declared */
export function errorKindOf(code: ErrorCode | DeclaredCode): ErrorKind {
  const kind = declared.get(code) ?? ERRORS[code as ErrorCode];
  if (kind === undefined) throw new Error(`the error code ${code} is not declared: declare it with declareErrors`);
  return kind;
}

/** What one occurrence of an error adds to the meaning of its code. */
export interface ErrorOptions {
  /** The message for the client; absent: the catalog's summary. It must never contain a secret or content of the call. */
  readonly message?: string;
  /** The invalid field of the request, as a path such as `messages[0].role`. */
  readonly param?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  /** Replaces the status (and thus the error type) of the code with 400, because the request asks for something that the gateway does not serve. */
  readonly status?: 400;
  /** Replaces the catalog's value of `retryable` for this occurrence of the error. */
  readonly retryable?: boolean;
  /** Headers of this error's answer in addition to those that all error answers have, such as `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error that the client sees. The gateway answers any other exception with INTERNAL_ERROR. */
export class GatewayError extends Error {
  readonly status: number;
  readonly type: string;
  readonly retryable: boolean;

  constructor(
    readonly code: ErrorCode | DeclaredCode,
    readonly options: ErrorOptions = {},
  ) {
    const kind = errorKindOf(code);
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

/** Makes the error of a bad value in a request: its message begins with the name of the field. */
export function invalidParam(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}

/** The most characters of a message. Messages may repeat the client's input, and an answer must stay small. */
const MAX_MESSAGE_LENGTH = 1_000;
const MAX_PARAM_LENGTH = 200;

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
      message: shorten(error.message, MAX_MESSAGE_LENGTH),
      param: param === undefined ? null : shorten(param, MAX_PARAM_LENGTH),
      details: details ?? {},
      retryable: error.retryable,
    },
  };
}
