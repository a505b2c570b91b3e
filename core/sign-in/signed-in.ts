import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Knex } from 'knex';
import { fail } from '../errors';
import { cookieOf, SESSION_COOKIE } from '../http/cookies';
import { isChange } from './console-requests';
import { csrfTokenOf, findSession, type Session } from './sessions';

/** Returns the session of the request's cookie. A change also needs the token that only our page can know. */
export function signedIn(database: Knex): (request: IncomingMessage) => Promise<Session> {
  return async (request) => {
    const token = cookieOf(request, SESSION_COOKIE);
    const session = token === undefined ? undefined : await findSession(database, token);
    if (session === undefined) throw fail('NOT_SIGNED_IN');
    requireCsrfToken(request, session);
    return session;
  };
}

/** @throws FORBIDDEN for a change without the token that only our page can know */
export function requireCsrfToken(request: IncomingMessage, session: Pick<Session, 'token'>): void {
  if (isChange(request) && !isEqual(request.headers['x-csrf-token'], csrfTokenOf(session)))
    throw fail('FORBIDDEN', { message: 'x-csrf-token: expected the csrfToken of GET session' });
}

function isEqual(shown: string | string[] | undefined, expected: string): boolean {
  if (typeof shown !== 'string' || shown.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(shown), Buffer.from(expected));
}
