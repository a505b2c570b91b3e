import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { fail, GatewayError } from '../../../core/errors';
import { cookieOf, setCookie } from '../../../core/http/cookies';
import type { Proxies } from '../../../core/http/proxies';
import { type Reader, reader } from '../../../core/http/query';
import type { IdentityRefusal } from '../../../core/sign-in/identities';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import type { IdentityProvider, Journey } from '../oidc';

/** The browser's way to the provider and back. A cookie of its own keeps what the way back needs. */

const COOKIE = 'tollgate-oidc';
export const AWAY_AT_MOST_MS = 600_000;

/** The reason of a failed sign-in, for the page. */
export type Reason = IdentityRefusal | 'denied' | 'expired' | 'slowed' | 'failed';

interface Away extends Journey {
  readonly returnTo: string;
  readonly sinceMs: number;
}

export interface OidcParts {
  readonly database: Knex;
  readonly log: Logger;
  readonly times: SessionTimes;
  readonly proxies: Proxies;
  readonly provider: IdentityProvider | undefined;
}

/** @throws NOT_FOUND if no identity provider is configured */
export function requireProvider({ provider }: OidcParts): IdentityProvider {
  if (provider === undefined)
    throw fail('NOT_FOUND', { message: 'No identity provider is configured. Sign in with a password or a link.' });
  return provider;
}

/** Reads a path of the console. Rejects every text that a browser could read as another host's address. */
export const readReturnTo: Reader<string> = reader({ type: 'string' }, (text) => {
  if (/^\/console(\/[\w\-./]*)?(\?[\w\-.=&%:+]*)?$/.test(text) && !/\/\/|\.\./.test(text)) return text;
  throw new RangeError('expected a path under /console');
});

export function rememberAway(response: ServerResponse, journey: Journey, returnTo: string): void {
  const away: Away = { ...journey, returnTo, sinceMs: Date.now() };
  const value = Buffer.from(JSON.stringify(away)).toString('base64url');
  // The way back begins at another site, and browsers would not send a strict cookie.
  setCookie(response, COOKIE, value, { sameSite: 'Lax', maxAgeSeconds: AWAY_AT_MOST_MS / 1_000 });
}

export function forgetAway(response: ServerResponse): void {
  setCookie(response, COOKIE, '', { sameSite: 'Lax' });
}

/** Reads the cookie. The browser could have changed it, so its content is checked. */
export function readAway(request: IncomingMessage): Away | undefined {
  try {
    const read = JSON.parse(Buffer.from(cookieOf(request, COOKIE) ?? '', 'base64url').toString()) as Partial<Away>;
    const { state, nonce, verifier, returnTo, sinceMs } = read;
    if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string') return undefined;
    if (typeof returnTo !== 'string' || typeof sinceMs !== 'number') return undefined;
    return { state, nonce, verifier, returnTo: readReturnTo(returnTo), sinceMs };
  } catch {
    return undefined;
  }
}

export function signInAgain(response: ServerResponse, reason: Reason): void {
  redirect(response, 303, `/console/sign-in#error=${reason}`);
}

export function redirect(response: ServerResponse, status: 302 | 303, location: string): void {
  response.writeHead(status, { location });
  response.end();
}

/** Returns the reason for the page. Logs every error but a request that came too early. */
export function reasonOf(error: unknown, log: Logger, message: string): Reason {
  if (error instanceof GatewayError && error.code === 'SIGN_IN_SLOWED') return 'slowed';
  log.warn({ reason: textOf(error) }, message);
  return 'failed';
}

/** Describes an error with its cause, where libraries put the details. No cause contains a token. */
function textOf(error: unknown): string {
  const { message = String(error), code, cause } = error as Error & { code?: string };
  const inner = cause instanceof Error ? `: ${cause.message}` : '';
  return `${code === undefined ? '' : `${code} `}${message}${inner}`;
}
