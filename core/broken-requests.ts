import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorEnvelope, fail, type GatewayError } from './errors';
import { errorHeaders, newRequestId, sendError } from './http';

/**
 * What Node refuses before there is a request to answer gets our envelope too: broken framing, heads that are too large or
 * do not come in time, expectations nobody meets.
 */
export function answerBrokenRequests(server: Server): void {
  server.on('clientError', refuse);
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    sendError(request, response, fail('EXPECTATION_FAILED'), newRequestId());
  });
}

type BrokenSocket = Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } | null };

function refuse(error: Error & { code?: string }, socket: BrokenSocket): void {
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
  // Whoever goes on sending is not listened to: the answer goes out and the connection with it.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

const REASON = 'Refused';

function refusalOf(code: string | undefined): GatewayError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return fail('HEADERS_TOO_LARGE');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return fail('BODY_TIMEOUT', { message: 'The request did not arrive in time.' });
    default:
      return fail('MALFORMED_REQUEST');
  }
}
