import type { IncomingMessage } from 'node:http';
import { fail, type GatewayError } from '../errors';

/** `http://host/path`, as clients write it to proxies: its authority counts, whatever the Host header says (RFC 9112, 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)([^#]*)$/i;

/** A name or an IPv6 address in brackets, with or without port. Percent-encoding and user names would be read in two ways. */
const HOST = /^(?:[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Makes sure that there is one reading of what a request is addressed to, before anything looks at it: one host, in lower
 * case and without trailing dot in `headers.host`, and a path in `url`.
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

/** Host without port and trailing dot, in lower case. */
export function hostOf({ headers: { host = '' } }: Pick<IncomingMessage, 'headers'>): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/** `{upstream}.p.{domain}`, and whatever looks like it: never anything but the upstream it names. */
export function isDirectHost(host: string): boolean {
  return host.includes('.p.');
}
