import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorEnvelope, fail, type GatewayError } from '../errors';
import { errorHeaders, newRequestId, sendError } from './http';
import { closeAfter, isAnswered, isClosing } from './lingering-close';

/** Sees each request that was refused before there was one to answer, with the id that its answer has. */
export type BrokenRequestEnded = (id: string, refusal: GatewayError) => void;

/**
 * What Node refuses before there is a request to answer gets our envelope too: broken framing, heads that are too large or
 * do not come in time, expectations that are not met.
 */
export function answerBrokenRequests(server: Server, ended: BrokenRequestEnded): void {
  server.on('clientError', (error, socket) => refuse(error, socket, ended));
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
  // Node reports every piece of what follows the first fault.
  if (isClosing(socket)) return;
  if (isAnswered(socket)) return void closeAfter(socket);
  // Half of another answer must not be followed by this one.
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
  // A slow client must not hold its connection longer, and a call that runs must learn that its client is cut off.
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
