import type { IncomingMessage } from 'node:http';
import { fail, type GatewayError } from '../errors';

/** Headers that identify the caller and the request. `Connection` must not name them as hop-by-hop. */
const FOR_ALL_HOPS: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'x-api-key',
  'svc-key',
  'content-type',
  'content-length',
]);

/**
 * Rejects heads that two programs could interpret differently, as far as Node's own parser accepts them. It reads the raw headers
 * once, because Node silently drops a second `host` or `authorization` from the parsed headers.
 */
export function checkHead({ rawHeaders, httpVersion }: IncomingMessage): GatewayError | undefined {
  let hosts = 0;
  let authorizations = 0;
  let encodings = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    // Compares lengths first, because this runs for every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') authorizations += 1;
    else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      encodings += 1;
      if (value.toLowerCase() !== 'chunked') return wrong('transfer-encoding', 'expected chunked');
    } else if (name.length === 10 && name.toLowerCase() === 'connection' && namesFieldForAll(value)) {
      return wrong('connection', 'names a header that must not be limited to one connection');
    }
  }
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return fail('MALFORMED_REQUEST', { headers: CLOSE });
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return wrong('host', 'expected one Host header');
  if (authorizations > 1) return wrong('authorization', 'expected one Authorization header');
  if (encodings > 1) return wrong('transfer-encoding', 'expected the header once');
  // HTTP/1.0 has no chunks: a proxy between would take them for the body, or for the next request.
  if (encodings > 0 && httpVersion === '1.0') return wrong('transfer-encoding', 'expected no such header in HTTP/1.0');
  return undefined;
}

/** The bytes after such a head on its connection may be anything. */
const CLOSE = { connection: 'close' };

function namesFieldForAll(value: string): boolean {
  if (value === 'keep-alive' || value === 'close') return false;
  return value.split(',').some((option) => FOR_ALL_HOPS.has(option.trim().toLowerCase()));
}

function wrong(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}`, headers: CLOSE });
}
