import type { IncomingMessage, ServerResponse } from 'node:http';
import { saidPublicUrl } from './public-url';

/** Whether browsers reach us over TLS only: then cookies never travel without. */
function isSecure(): boolean {
  return saidPublicUrl()?.startsWith('https:') === true;
}

/** `__Host-` makes browsers refuse one that another host of the domain has set. */
function fullName(name: string, secure: boolean): string {
  return secure ? `__Host-${name}` : name;
}

export interface CookieOptions {
  readonly sameSite: 'Strict' | 'Lax';
  /** Absent: until the browser ends. */
  readonly maxAgeSeconds?: number;
  /** Whether the browser came over TLS; unless given, `PUBLIC_URL` says it. */
  readonly secure?: boolean;
}

/** Adds a cookie that no script can read; an empty value takes it away. */
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

/** Another name than the console's: browsers send cookies to every port of a host. */
export const OPERATOR_COOKIE = 'tollgate-operator';
