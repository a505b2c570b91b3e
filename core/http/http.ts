import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type ErrorOptions, errorEnvelope, fail, type GatewayError, shorten } from '../base/errors';
import type { MaybeLater } from '../base/maybe-later';
import { takeRandom } from '../base/random';
import { compileCheckInPlace, type Problem, type Schema } from '../base/settings';
import { AnswerRoom, type BodyOwner, BUFFERED, SMALL_BODY_BYTES } from './buffered-bytes';
import { JsonError, type JsonObserver, JsonScanner, type JsonToken } from './json-scanner';
import { answerEarly } from './lingering-close';
import { announcedBytes, type BodyLook, checkBodyHeaders, ownLimits, readBody, saysJson } from './read-body';

const rooms = new WeakMap<ServerResponse, AnswerRoom>();

/** Counts the data of this answer that the client has not read yet in the account's memory limit. It is for answers of the gateway's own API. */
export function countFor(response: ServerResponse, accountId: string): void {
  const room = new AnswerRoom(accountId);
  rooms.set(response, room);
  whenClosed(response, () => room.close());
}

/** Returns the memory space of an answer of the gateway's own API; undefined if the answer belongs to no account. */
export function answerRoomOf(response: ServerResponse): AnswerRoom | undefined {
  return rooms.get(response);
}

/** Calls `work` when the answer has been sent or its client has disconnected; at once if that has already happened. */
export function whenClosed(response: ServerResponse, work: () => void): void {
  if (response.closed) work();
  else response.once('close', work);
}

/** Sends a JSON answer. @throws OVERLOADED if the clients of its account leave too many answers unread */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.end(writeJsonHead(response, status, body, headers));
}

/**
 * Sends the status and headers of a JSON answer.
 * @returns the JSON text of the body, which the caller must send next
 */
function writeJsonHead(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string>,
): string {
  const text = JSON.stringify(body);
  const byteLength = Buffer.byteLength(text);
  answerRoomOf(response)?.wait(byteLength);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': byteLength,
    ...headers,
  });
  return text;
}

export function newRequestId(): string {
  return `req_${takeRandom(12).toString('hex')}`;
}

/** Sets the header with the request id, which identifies the call in the log and in the usage records. */
export function setRequestId(response: ServerResponse, id: string): void {
  response.setHeader('x-svc-request-id', id);
  response.setHeader('request-id', id);
  response.setHeader('x-request-id', id);
}

/** Returns the headers of an error answer that the gateway itself makes. */
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

/** Sends the error envelope (docs/contract.md, section 3). The request's body may still be arriving. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: GatewayError,
  requestId: string,
): void {
  const text = writeJsonHead(response, error.status, errorEnvelope(error, requestId), errorHeaders(error, requestId));
  answerEarly(request, response, text);
}

/** Returns a function that reads a small JSON body of the gateway's own API and checks it against `schema`. `T` must be the type `Settings` of that schema. */
export function jsonBody<T>(schema: Schema): (request: IncomingMessage) => Promise<T> {
  const read = largeJsonBody<T>(schema, SMALL_BODY_BYTES);
  return (request) => read(request, NO_OWNER);
}

/** Small bodies do not count in the memory budget. */
const NO_OWNER: BodyOwner = { onEnd: () => undefined };

/** Returns a function that reads and checks a JSON body that may be large. The body counts in the process's memory budget until the request ends. */
export function largeJsonBody<T>(
  schema: Schema,
  maxBytes: number,
): (request: IncomingMessage, owner: BodyOwner) => Promise<T> {
  const check = compileCheckInPlace<T>(schema, MAX_PROBLEMS);
  return async (request, owner) => {
    const body = await readBytes(request, owner, maxBytes, new JsonScanner(new JsonLimits()));
    const checked = check(body.length === 0 ? {} : parseJson(body));
    if ('problems' in checked) throw invalidField(checked.problems);
    return checked.value;
  };
}

/**
 * Reads a whole body unchanged. `json` checks it while it arrives.
 * @throws UNSUPPORTED_MEDIA_TYPE if it is compressed, BODY_TOO_LARGE, BODY_TIMEOUT, OVERLOADED
 */
export async function readBytes(
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

/** An empty body counts as an empty object and needs no content type. */
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

const MAX_PROBLEMS = 10;
/** The most characters of a member's name that an error shows, because a client can send a name as long as the body. */
const MAX_PARAM_LENGTH = 200;
const MAX_PROBLEM_LENGTH = 300;

/** Returns the error INVALID_FIELD about the first problem of a request. `details.problems` lists the first ten problems. */
export function invalidField(problems: readonly Problem[]): GatewayError {
  const shown = problems.slice(0, MAX_PROBLEMS).map(({ path, missing, message }) => ({
    param: shorten(pathText(missing === undefined ? path : [...path, missing]), MAX_PARAM_LENGTH),
    message: shorten(message, MAX_PROBLEM_LENGTH),
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

/** Formats a path: `['messages', 0, 'role']` becomes `messages[0].role`. */
export function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

/** The deepest nesting of JSON that the gateway's own API accepts. */
const MAX_DEPTH = 64;

/** The most values in one body of the gateway's own API: members, elements and containers. */
const MAX_VALUES = 10_000;

/**
 * Limits the cost of parsing and checking a body of the gateway's own API. A scanner reports every value while the body arrives. A body
 * with too many values is thus rejected before any object is built from it.
 */
class JsonLimits implements JsonObserver {
  #values = 0;

  open(depth: number, _isObject: boolean, token: JsonToken): void {
    if (depth > MAX_DEPTH) throw new JsonError(`JSON is nested deeper than ${MAX_DEPTH} levels`, token.start);
    this.#count(token);
  }

  scalar(_depth: number, _firstByte: number, token: JsonToken): void {
    this.#count(token);
  }

  key(): void {}

  close(): void {}

  #count(token: JsonToken): void {
    this.#values += 1;
    if (this.#values > MAX_VALUES) throw new JsonError(`JSON has more than ${MAX_VALUES} values`, token.start);
  }
}

/** Bodies up to this size are sent together with their heads in one write. */
const ONE_PIECE_BYTES = 8 * 1_024;

/**
 * Sends a body that is completely in memory. It writes a large body in pieces, because this shows whether the client reads. Never rejects.
 * It does not free `room`: its caller does that, because the bytes stay in memory until the last piece.
 */
export function sendWhole(response: ServerResponse, body: Buffer, room: AnswerRoom | undefined): MaybeLater<void> {
  // Node sends a string in one write with the head, which is cheaper than two writes.
  if (body.length <= ONE_PIECE_BYTES) return void response.end(body.toString('latin1'), 'latin1');
  if (body.length <= SMALL_BODY_BYTES) return void response.end(body);
  room?.wait(body.length);
  return pipeline(piecesOf(body, room), response).catch(() => void response.destroy());
}

function* piecesOf(body: Buffer, room: AnswerRoom | undefined): Generator<Buffer> {
  for (let at = 0; at < body.length; at += SMALL_BODY_BYTES) {
    room?.read();
    yield body.subarray(at, at + SMALL_BODY_BYTES);
  }
}
