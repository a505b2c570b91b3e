import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorOptions, errorEnvelope, fail, type GatewayError, shorten } from '../errors';
import { takeRandom } from '../random';
import { compileCheckInPlace, type Problem, type Schema } from '../settings';
import { type BodyOwner, BUFFERED, SMALL_BODY_BYTES } from './buffered-bytes';
import { JsonLimits } from './json-limits';
import { JsonScanner } from './json-scanner';
import { answerEarly } from './lingering-close';
import { announcedBytes, type BodyLook, checkBodyHeaders, ownLimits, readBody, saysJson } from './read-body';

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.end(writeJsonHead(response, status, body, headers));
}

/** @returns the body that has to follow */
function writeJsonHead(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string>,
): string {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  return text;
}

export function newRequestId(): string {
  return `req_${takeRandom(12).toString('hex')}`;
}

/** Sets the request id, by which support finds the call later, on an answer. */
export function setRequestId(response: ServerResponse, id: string): void {
  response.setHeader('x-svc-request-id', id);
  response.setHeader('request-id', id);
  response.setHeader('x-request-id', id);
}

/** The headers of an answer that is an error of ours. */
export function errorHeaders(error: GatewayError, requestId: string): Record<string, string> {
  const headers: Record<string, string> = {
    'x-svc-source': 'platform',
    'x-svc-request-id': requestId,
    'request-id': requestId,
    'x-request-id': requestId,
    'x-should-retry': String(error.retryable),
    ...error.options.headers,
  };
  if (error.options.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.options.retryAfterSeconds);
  return headers;
}

/** Sends the envelope of an error (docs/contract.md, section 3). The body of the request may still be arriving. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: GatewayError,
  requestId: string,
): void {
  const text = writeJsonHead(response, error.status, errorEnvelope(error, requestId), errorHeaders(error, requestId));
  answerEarly(request, response, text);
}

/** Reads a small JSON body of our own API and checks it; `T` is the schema's `Settings`. */
export function jsonBody<T>(schema: Schema): (request: IncomingMessage) => Promise<T> {
  const read = largeJsonBody<T>(schema, SMALL_BODY_BYTES);
  return (request) => read(request, NOBODY);
}

/** Small bodies are not counted. */
const NOBODY: BodyOwner = { onEnd: () => undefined };

/** The same for a body that may be large: it counts in the budget of the process until the visit ends. */
export function largeJsonBody<T>(
  schema: Schema,
  maxBytes: number,
): (request: IncomingMessage, owner: BodyOwner) => Promise<T> {
  const check = compileCheckInPlace<T>(schema, MOST_PROBLEMS);
  return async (request, owner) => {
    const body = await readOwnBody(request, owner, maxBytes, new JsonScanner(new JsonLimits()));
    const checked = check(body.length === 0 ? {} : parseJson(body));
    if ('problems' in checked) throw invalidField(checked.problems);
    return checked.value;
  };
}

/** Reads a whole body as it came. @throws UNSUPPORTED_MEDIA_TYPE when it is compressed, BODY_TOO_LARGE, BODY_TIMEOUT, OVERLOADED */
export function readBytes(request: IncomingMessage, owner: BodyOwner, maxBytes: number): Promise<Buffer> {
  return readOwnBody(request, owner, maxBytes);
}

async function readOwnBody(
  request: IncomingMessage,
  owner: BodyOwner,
  maxBytes: number,
  json?: JsonScanner,
): Promise<Buffer> {
  checkBodyHeaders(request, maxBytes);
  const room = BUFFERED.open(owner, announcedBytes(request));
  const look = json === undefined ? undefined : jsonOrNothing(request, json);
  return Buffer.concat([...(await readBody(request, { limits: ownLimits(maxBytes), room, look }))]);
}

/** An empty body is as good as an empty object, and needs no content type. */
function jsonOrNothing(request: IncomingMessage, json: JsonScanner): BodyLook {
  let isEmpty = true;
  return {
    feed: (chunk) => {
      if (chunk.length > 0 && !saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
      isEmpty &&= chunk.length === 0;
      json.feed(chunk);
    },
    finish: () => {
      if (!isEmpty) json.finish();
    },
  };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (cause) {
    throw fail('INVALID_JSON', { cause });
  }
}

/** The most problems of one body that an error lists. */
const MOST_PROBLEMS = 10;
/** A name in a body may be as long as the body. */
const LONGEST_PARAM = 200;
const LONGEST_PROBLEM = 300;

/** INVALID_FIELD for the first of several problems; `details.problems` has the first ten. */
export function invalidField(problems: readonly Problem[]): GatewayError {
  const shown = problems.slice(0, MOST_PROBLEMS).map(({ path, missing, message }) => ({
    param: shorten(pathText(missing === undefined ? path : [...path, missing]), LONGEST_PARAM),
    message: shorten(message, LONGEST_PROBLEM),
  }));
  const options: ErrorOptions = { details: { problems: shown } };
  const [first] = shown;
  if (first === undefined) return fail('INVALID_FIELD', options);
  return fail('INVALID_FIELD', {
    ...options,
    param: first.param,
    message: first.param === '' ? first.message : `${first.param}: ${first.message}`,
  });
}

/** `['messages', 0, 'role']` -> `messages[0].role` */
export function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}
