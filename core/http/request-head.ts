import type { IncomingMessage } from 'node:http';
import { fail, type GatewayError } from '../base/errors';

/** Headers that identify the caller and the request. A request's `Connection` header must not name them, because a proxy would then remove them. */
const FOR_ALL_HOPS: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'x-api-key',
  'svc-key',
  'content-type',
  'content-length',
]);

/** Returns the error for a head that two programs could interpret differently, or else normalizes its address to one interpretation. */
export function settleHead(request: IncomingMessage): GatewayError | undefined {
  return checkHead(request) ?? settleTarget(request);
}

/**
 * Returns the error for a head that Node's parser accepts but that two programs could interpret differently. It reads the raw headers once,
 * because Node silently drops a second `host` or `authorization` from the parsed headers.
 */
function checkHead({ rawHeaders, httpVersion }: IncomingMessage): GatewayError | undefined {
  let hosts = 0;
  let authorizations = 0;
  let encodings = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    // The length of each header name is compared before its letters. This is fast, and the loop runs for every header of every request.
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
  // HTTP/1.0 has no chunks. A proxy on the path would read them as the body, or as the next request.
  if (encodings > 0 && httpVersion === '1.0') return wrong('transfer-encoding', 'expected no such header in HTTP/1.0');
  return undefined;
}

/** Closes the connection after a head that can be interpreted in several ways. The bytes after it cannot be interpreted reliably. */
const CLOSE = { connection: 'close' };

function namesFieldForAll(value: string): boolean {
  if (value === 'keep-alive' || value === 'close') return false;
  return value.split(',').some((option) => FOR_ALL_HOPS.has(option.trim().toLowerCase()));
}

function wrong(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}`, headers: CLOSE });
}

/**
 * Matches `http://host/path`, the form that clients send to proxies. Its host counts, whatever the Host header contains (RFC
 * 9112, 3.2.2).
 */
const ABSOLUTE = /^https?:\/\/([^/?#:][^/?#]*)([^#]*)$/i;

/**
 * Matches a host as the Host header contains it: a name or an IPv6 address in brackets, with or without port. Percent-encoding and user
 * names do not match, because programs could interpret them in two ways.
 */
const HOST = /^(?:[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Ensures that a request's address has one interpretation only. Afterwards `headers.host` contains one host in lower case without a
 * trailing dot. `url` contains a path, or the `*` of an OPTIONS request. Every other target is refused, because Node's parser accepts `*x`
 * and schemes of any kind.
 */
function settleTarget(request: IncomingMessage): GatewayError | undefined {
  const { headers, method, url = '/' } = request;
  if (url.charCodeAt(0) !== SLASH && !(url === '*' && method === 'OPTIONS')) {
    const [, authority, path = ''] = ABSOLUTE.exec(url) ?? [];
    if (authority === undefined) return fail('INVALID_FIELD', { param: 'target', message: NO_TARGET, headers: CLOSE });
    headers.host = authority;
    request.url = path.startsWith('/') ? path : `/${path}`;
  }
  const { host } = headers;
  if (host === undefined) return undefined;
  if (host !== newest.given) {
    if (!HOST.test(host)) return fail('INVALID_FIELD', { param: 'host', message: NO_HOST, headers: CLOSE });
    const name = hostOf(request);
    newest = { given: host, settled: name + (/:\d+$/.exec(host)?.[0] ?? ''), name };
  }
  headers.host = newest.settled;
  return undefined;
}

/**
 * The newest valid Host header: as received (`given`), normalized (`settled`), and its host alone (`name`). It is cached because nearly
 * every request repeats the previous Host header.
 */
let newest = { given: '', settled: '', name: '' };

const SLASH = 0x2f;
const NO_TARGET = 'target: expected a path that begins with /, or a whole http or https address';
const NO_HOST = 'host: expected a host name or an address, optionally with a port';

export function pathOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** Returns the host of a request without port and trailing dot, in lower case. */
export function hostOf({ headers: { host = '' } }: Pick<IncomingMessage, 'headers'>): string {
  if (host === newest.settled) return newest.name;
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/**
 * Returns whether the host contains `.p.`, as `{upstream}.p.{domain}` does. The gateway routes calls to such a host only to the upstream
 * that the host names.
 */
export function isDirectHost(host: string): boolean {
  return host.includes('.p.');
}
