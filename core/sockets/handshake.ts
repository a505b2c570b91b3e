import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { fail } from '../base/errors';

const KEY = /^[+/0-9A-Za-z]{22}==$/;
const VERSION = '13';

export function asksForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** Checks the version and the key of a WebSocket handshake. @throws MALFORMED_REQUEST */
export function checkHandshake({ headers }: IncomingMessage): void {
  if (headers['sec-websocket-version'] !== VERSION)
    throw fail('MALFORMED_REQUEST', {
      message: `sec-websocket-version: expected ${VERSION}`,
      headers: { 'sec-websocket-version': VERSION },
    });
  if (!KEY.test(headers['sec-websocket-key'] ?? ''))
    throw fail('MALFORMED_REQUEST', { message: 'sec-websocket-key: expected 16 bytes as base64' });
}

/** Headers that calls do not inherit from the handshake, because they name or count one request and a socket has many calls. */
const OF_HANDSHAKE: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'openai-beta',
  'transfer-encoding',
  'upgrade',
  'x-stainless-retry-count',
]);

/** Returns the headers of every call of a WebSocket: those of its handshake, as alternating names and values. */
export function headersOfCalls(handshake: IncomingMessage): string[] {
  const { rawHeaders, headers } = handshake;
  const own = ['host', headers.host ?? '', 'content-type', 'application/json', 'accept', 'text/event-stream'];
  const beta = betaOfCalls(headers);
  if (beta !== '') own.push('openai-beta', beta);
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (!OF_HANDSHAKE.has(name) && !name.startsWith('sec-websocket-')) own.push(name, rawHeaders[index + 1] ?? '');
  }
  return own;
}

const SOCKET_PROTOCOL = 'responses_websockets=';

/** Returns `openai-beta` for a call, without the WebSocket protocol, because a POST does not speak it. */
function betaOfCalls(headers: IncomingHttpHeaders): string {
  return betas(headers)
    .filter((each) => !each.startsWith(SOCKET_PROTOCOL))
    .join(', ');
}

/** The version of OpenAI's WebSocket protocol that a client names in the header `openai-beta`; undefined if the header names none. */
export function socketBeta({ headers }: IncomingMessage): string | undefined {
  return betas(headers).find((each) => each.startsWith(SOCKET_PROTOCOL));
}

function betas({ 'openai-beta': beta = '' }: IncomingHttpHeaders): readonly string[] {
  return String(beta)
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
}
