import type { IncomingMessage } from 'node:http';
import { fail, type GatewayError } from '../errors';

/**
 * Matches `http://host/path`, the form that clients send to proxies. Its host counts, whatever the Host header contains (RFC
 * 9112, 3.2.2).
 */
const ABSOLUTE = /^https?:\/\/([^/?#:][^/?#]*)([^#]*)$/i;

/**
 * Matches a name or an IPv6 address in brackets, with or without port. Percent-encoding and user names could be interpreted in
 * two ways, so they do not match.
 */
const HOST = /^(?:[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Makes sure that a request's address can be interpreted in one way only. It leaves one host in lower case without a trailing dot
 * in `headers.host`, and in `url` a path, or the `*` of an OPTIONS request. Every other target is refused: Node's parser accepts
 * `*x` and schemes of any kind.
 */
export function settleTarget(request: IncomingMessage): GatewayError | undefined {
  const { headers, method, url = '/' } = request;
  if (url.charCodeAt(0) !== SLASH && !(url === '*' && method === 'OPTIONS')) {
    const [, authority, path = ''] = ABSOLUTE.exec(url) ?? [];
    if (authority === undefined) return fail('INVALID_FIELD', { param: 'target', message: NO_TARGET, headers: CLOSE });
    headers.host = authority;
    request.url = path.startsWith('/') ? path : `/${path}`;
  }
  const { host } = headers;
  if (host === undefined) return undefined;
  if (!HOST.test(host)) return fail('INVALID_FIELD', { param: 'host', message: NO_HOST, headers: CLOSE });
  headers.host = hostOf(request) + (/:\d+$/.exec(host)?.[0] ?? '');
  return undefined;
}

const SLASH = 0x2f;
/** The bytes after such a head on its connection may be anything. */
const CLOSE = { connection: 'close' };
const NO_TARGET = 'target: expected a path that begins with /, or a whole http or https address';
const NO_HOST = 'host: expected a host name or an address, optionally with a port';

export function pathOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** Returns the host without port and trailing dot, in lower case. */
export function hostOf({ headers: { host = '' } }: Pick<IncomingMessage, 'headers'>): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/**
 * Matches `{upstream}.p.{domain}` and everything that looks like it. Such a host never reaches anything but the upstream that it
 * names.
 */
export function isDirectHost(host: string): boolean {
  return host.includes('.p.');
}
