import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyPace, PACE_LIMITS } from './body-pace';
import { type ErrorOptions, errorEnvelope, fail, type GatewayError } from './errors';
import { answerEarly } from './lingering-close';
import { takeRandom } from './random';
import { compileCheck, type Problem, type Schema } from './settings';

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

/** The headers every answer carries that the platform can be asked about later. */
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

/** Sends the envelope of an error; contract section 3. The body of the request may still be on its way. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: GatewayError,
  requestId: string,
): void {
  const text = writeJsonHead(response, error.status, errorEnvelope(error, requestId), errorHeaders(error, requestId));
  answerEarly(request, response, text);
}

/** Reads small JSON bodies of our own API and checks them; `T` is the schema's `Settings`. */
export function jsonBody<T>(schema: Schema, maxBytes = 65_536): (request: IncomingMessage) => Promise<T> {
  const check = compileCheck<T>(schema);
  return async (request) => {
    const body = await readBytes(request, maxBytes);
    if (body.length > 0 && !saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
    const checked = check(body.length === 0 ? {} : parseJson(body));
    if ('problems' in checked) throw invalidField(checked.problems);
    return checked.value;
  };
}

/** A whole body, as it came. @throws UNSUPPORTED_MEDIA_TYPE when it is compressed, BODY_TOO_LARGE, BODY_TIMEOUT */
export function readBytes(request: IncomingMessage, maxBytes: number, pace = PACE_LIMITS): Promise<Buffer> {
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') throw fail('UNSUPPORTED_MEDIA_TYPE');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const stop = (error: Error) => {
      watched.stop();
      // What is left of it stays in the request, for whoever sends the refusal.
      request.off('data', take).pause();
      reject(error);
    };
    const watched = new BodyPace(pace, stop);
    const take = (chunk: Buffer) => {
      chunks.push(chunk);
      watched.receivedBytes += chunk.length;
      if (watched.receivedBytes > maxBytes)
        stop(fail('BODY_TOO_LARGE', { message: `The body has more than ${maxBytes} bytes.` }));
    };
    request.on('data', take);
    request.once('end', () => {
      watched.stop();
      resolve(Buffer.concat(chunks));
    });
    request.once('error', stop);
    request.once('close', () => stop(new Error('the client left')));
  });
}

export function saysJson({ headers }: IncomingMessage): boolean {
  return JSON_TYPE.test(headers['content-type'] ?? '');
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (cause) {
    throw fail('INVALID_JSON', { cause });
  }
}

/** INVALID_FIELD for the first of several problems; `details.problems` has them all. */
export function invalidField(problems: readonly Problem[]): GatewayError {
  const shown = problems.map(({ path, missing, message }) => ({
    param: pathText(missing === undefined ? path : [...path, missing]),
    message,
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
