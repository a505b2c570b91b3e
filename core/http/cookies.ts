import type { IncomingMessage, ServerResponse } from 'node:http';
import { saidPublicUrl } from './public-url';

/** Returns whether browsers reach the gateway over TLS. Cookies are then sent over TLS only. */
function isSecure(): boolean {
  return saidPublicUrl()?.startsWith('https:') === true;
}

/** With the prefix `__Host-`, browsers reject cookies of this name that another host of the domain has set. */
function fullName(name: string, secure: boolean): string {
  return secure ? `__Host-${name}` : name;
}

interface CookieOptions {
  readonly sameSite: 'Strict' | 'Lax';
  /** The lifetime of the cookie in seconds; if absent, the cookie lasts until the browser is closed. */
  readonly maxAgeSeconds?: number;
  readonly secure?: boolean;
}

/** Sets a cookie that scripts cannot read. An empty value deletes the cookie. */
export function setCookie(response: ServerResponse, name: string, value: string, options: CookieOptions): void {
  const age = value === '' ? 0 : options.maxAgeSeconds;
  const { secure = isSecure() } = options;
  const parts = [
    `${fullName(name, secure)}=${value}`,
    'Path=/',
    'HttpOnly',
    `SameSite=${options.sameSite}`,
    ...(secure ? ['Secure'] : []),
    ...(age === undefined ? [] : [`Max-Age=${age}`]),
  ];
  response.appendHeader('set-cookie', parts.join('; '));
}

export function cookieOf({ headers }: IncomingMessage, name: string, secure = isSecure()): string | undefined {
  const start = `${fullName(name, secure)}=`;
  const found = (headers.cookie ?? '').split(';').find((each) => each.trimStart().startsWith(start));
  const value = found?.trim().slice(start.length);
  return value === '' ? undefined : value;
}

export const SESSION_COOKIE = 'tollgate-session';

/** The operator's cookie has another name than the console's, because browsers send cookies to all ports of a host. */
export const OPERATOR_COOKIE = 'tollgate-operator';
