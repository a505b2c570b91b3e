import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { cookieOf, SESSION_COOKIE } from '../http/cookies';
import { saidPublicUrl } from '../http/public-url';
import { csrfTokenOf, findSession, type Session } from './sessions';

const SAFE_METHODS = ['GET', 'HEAD'];

function isChange({ method = 'GET' }: IncomingMessage): boolean {
  return !SAFE_METHODS.includes(method);
}

/** Forbids inline code, content of other origins, and framing. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'connect-src', 'font-src', 'form-action'].map((directive) => `${directive} 'self'`),
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** Sets the headers of an answer for one person: caches must not store it, and browsers must not guess its type. */
export function beginConsoleAnswer(response: ServerResponse): void {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('content-security-policy', CONTENT_SECURITY_POLICY);
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
}

/**
 * Rejects a change that does not come from our own page. A browser reports the origin of each request, and no page can forge it.
 * A request without an origin does not come from our page in a browser.
 * @throws FORBIDDEN
 */
export function refuseOtherSites(request: IncomingMessage): void {
  if (!isChange(request)) return;
  const { 'sec-fetch-site': site, origin, host } = request.headers;
  if (site === undefined ? isOwnOrigin(origin, host) : site === 'same-origin') return;
  throw fail('FORBIDDEN', {
    message: 'The console accepts this request only from its own page, not from another site.',
  });
}

/** Returns whether an origin is ours. `PUBLIC_URL` names our origin if a proxy has changed the Host header. */
function isOwnOrigin(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false;
  const publicUrl = saidPublicUrl();
  return new URL(origin).host === host || (publicUrl !== undefined && origin === new URL(publicUrl).origin);
}

/** Returns a function that finds the session of a request by its cookie. A change also needs the token that only our page can know. */
export function signedIn(database: Knex): (request: IncomingMessage) => Promise<Session> {
  return async (request) => {
    const token = cookieOf(request, SESSION_COOKIE);
    const session = token === undefined ? undefined : await findSession(database, token);
    if (session === undefined) throw fail('NOT_SIGNED_IN');
    requireCsrfToken(request, session);
    return session;
  };
}

/** Checks the CSRF token of a change. @throws FORBIDDEN for a change without the token that only our page can know */
export function requireCsrfToken(request: IncomingMessage, session: Pick<Session, 'token'>): void {
  if (isChange(request) && !isEqual(request.headers['x-csrf-token'], csrfTokenOf(session)))
    throw fail('FORBIDDEN', { message: 'x-csrf-token: expected the csrfToken of GET session' });
}

function isEqual(shown: string | string[] | undefined, expected: string): boolean {
  if (typeof shown !== 'string' || shown.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(shown), Buffer.from(expected));
}
