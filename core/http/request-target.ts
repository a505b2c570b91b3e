import type { IncomingMessage } from 'node:http';
import { fail, type GatewayError } from '../errors';

/**
 * Matches `http://host/path`, the form that clients send to proxies. Its host counts, whatever the Host header contains (RFC
 * 9112, 3.2.2).
 */
const ABSOLUTE = /^https?:\/\/([^/?#]*)([^#]*)$/i;

/**
 * Matches a name or an IPv6 address in brackets, with or without port. Percent-encoding and user names could be interpreted in
 * two ways, so they do not match.
 */
const HOST = /^(?:[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Makes sure that a request's address can be interpreted in one way only. It leaves one host in lower case without a trailing dot
 * in `headers.host`, and a path in `url`.
 */
export function settleTarget(request: IncomingMessage): GatewayError | undefined {
  const { headers, url = '/' } = request;
  if (url.charCodeAt(0) !== SLASH) {
    const [, authority = '', path = ''] = ABSOLUTE.exec(url) ?? [];
    if (authority !== '') {
      headers.host = authority;
      request.url = path.startsWith('/') ? path : `/${path}`;
    }
  }
  const { host } = headers;
  if (host === undefined) return undefined;
  if (!HOST.test(host)) return fail('INVALID_FIELD', { param: 'host', message: NO_HOST });
  headers.host = hostOf(request) + (/:\d+$/.exec(host)?.[0] ?? '');
  return undefined;
}

const SLASH = 0x2f;
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
