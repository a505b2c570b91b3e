import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { fail } from '../../../core/base/errors';

/** Headers that the gateway removes from an instance's answer, because they would apply to everything at the gateway's origin. */
const ORIGINS_OWN = new Set([
  'set-cookie',
  'www-authenticate',
  'proxy-authenticate',
  'strict-transport-security',
  'clear-site-data',
  'public-key-pins',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'x-svc-source',
  'x-svc-request-id',
]);
/** Headers that apply only to the connection to the instance. The gateway relays neither them nor trailers. */
const CONNECTIONS_OWN = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'trailer',
  'upgrade',
]);

type Headers = Readonly<Record<string, string>>;

/**
 * Relays an instance's answer to the client. Node may refuse to write it, because the instance chooses every byte.
 * @throws SUPPLIER_ERROR if HTTP does not allow the answer; nothing has been sent to the client then
 */
export function relayAnswer(answer: IncomingMessage, response: ServerResponse, added: Headers): void {
  try {
    writeHead(answer, response, added);
  } catch (cause) {
    answer.destroy();
    forgetHead(response);
    throw noAnswer(cause);
  }
  // Destroy each side when the other fails, because the client must not take a partial answer for a complete one.
  pipeline(answer, response, () => undefined);
}

export function noAnswer(cause: unknown) {
  return fail('SUPPLIER_ERROR', {
    message: 'No program in the sandbox answers at this port. Start one that listens there.',
    cause,
  });
}

function writeHead(answer: IncomingMessage, response: ServerResponse, added: Headers): void {
  const { statusCode = 0, statusMessage = '' } = answer;
  if (statusCode < 200 || statusCode > 599)
    throw new RangeError(`the sandbox answered with the invalid status ${statusCode}`);
  const isPassed = ([name]: readonly [string, unknown]) =>
    !ORIGINS_OWN.has(name) && !CONNECTIONS_OWN.has(name) && !(name === 'content-length' && isBodiless(statusCode));
  const passed = Object.entries(answer.headers).filter(isPassed);
  response.writeHead(statusCode, statusMessage, { ...Object.fromEntries(passed), ...added });
}

/** Returns true for a status that never has a body. Some clients would wait for as many bytes as Content-Length says. */
function isBodiless(statusCode: number): boolean {
  return statusCode === 204 || statusCode === 304;
}

/** Removes the headers that `writeHead` had set before it threw an error. */
function forgetHead(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.statusMessage = '';
}

/** Returns the head of an answer that switches protocols. It keeps the instance's own bytes, which Node's parser has accepted. */
export function switchingHead({ rawHeaders }: IncomingMessage, added: Headers): Buffer {
  const lines = ['HTTP/1.1 101 Switching Protocols'];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (!ORIGINS_OWN.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  for (const [name, value] of Object.entries(added)) lines.push(`${name}: ${value}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
