import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorEnvelope, fail, type GatewayError } from '../base/errors';
import { errorHeaders, newRequestId, sendError } from './http';
import { closeAfter, isAnswered, isClosing, whenAnswered } from './lingering-close';

/** A listener for requests that were rejected before Node could parse them. `id` is the request id in the error answer, `refusal` the error. */
type BrokenRequestEnded = (id: string, refusal: GatewayError) => void;

/**
 * Sends the gateway's error envelope for requests that Node rejects before a request object exists. Their framing is broken, their head is
 * too large or arrives too late, or their `Expect` header is not supported. Requests with the method CONNECT also get the envelope, because
 * the gateway never connects to their target.
 */
export function answerBrokenRequests(server: Server, ended: BrokenRequestEnded): void {
  server.on('clientError', (error, socket) => refuse(error, socket, ended));
  // Without a listener for the event `connect`, Node would close the connection without an answer.
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    whenAnswered(socket, () => refuse(new Error('the method CONNECT is not supported'), socket, ended));
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const id = newRequestId();
    const refusal = fail('EXPECTATION_FAILED');
    sendError(request, response, refusal, id);
    ended(id, refusal);
  });
}

type BrokenSocket = Socket & { readonly _httpMessage?: { readonly headersSent: boolean } | null };

function refuse(error: Error & { code?: string }, duplex: Duplex, ended: BrokenRequestEnded): void {
  const socket = duplex as BrokenSocket;
  // Node emits the event `clientError` again for each further chunk after the first error.
  if (isClosing(socket)) return;
  if (isAnswered(socket)) return void closeAfter(socket);
  // No error may follow a half-sent answer on the same connection.
  if (!socket.writable || socket._httpMessage?.headersSent === true) {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(error.code);
  const id = newRequestId();
  const body = JSON.stringify(errorEnvelope(refusal, id));
  const headers = Object.entries({
    ...errorHeaders(refusal, id),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  const head = [`HTTP/1.1 ${refusal.status} ${REASON}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  const answer = `${head.join('\r\n')}\r\n\r\n${body}`;
  // Destroy the connection at once, because a slow client must not keep it, and a running call must learn that its client is disconnected.
  const isAtOnce = error.code === TOO_SLOW || isAnswering(socket);
  if (isAtOnce) socket.end(answer, () => socket.destroy());
  else closeAfter(socket, answer);
  ended(id, refusal);
}

function isAnswering({ _httpMessage }: BrokenSocket): boolean {
  return _httpMessage !== undefined && _httpMessage !== null;
}

const TOO_SLOW = 'ERR_HTTP_REQUEST_TIMEOUT';

const REASON = 'Refused';

function refusalOf(code: string | undefined): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return fail('HEADERS_TOO_LARGE');
    case TOO_SLOW:
      return fail('BODY_TIMEOUT', { message: 'The request did not arrive in time.' });
    default:
      return fail('MALFORMED_REQUEST');
  }
}
