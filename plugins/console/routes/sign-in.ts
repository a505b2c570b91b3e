import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import { readAccountRow } from '../../../core/accounts/accounts';
import { fail } from '../../../core/errors';
import { clientPlace } from '../../../core/http/client-place';
import { SESSION_COOKIE, setCookie } from '../../../core/http/cookies';
import type { Proxies } from '../../../core/http/proxies';
import { object, oneOf, shape } from '../../../core/http/shape';
import { beginAttempt } from '../../../core/sign-in/attempts';
import {
  beginSession,
  csrfTokenOf,
  type Session,
  type SessionTimes,
  type SignInWay,
} from '../../../core/sign-in/sessions';
import { findBySignIn, type User } from '../../../core/sign-in/users';

/** The common parts of the endpoints that begin, show and end sessions. */

export interface SignIn {
  readonly database: Knex;
  readonly times: SessionTimes;
  readonly proxies: Proxies;
  /** The identity provider's name if password sign-in is disabled; undefined if passwords are accepted. */
  readonly insteadOfPasswords: string | undefined;
}

/** A tried password or token. The schema tells an attacker nothing about its real form. */
export const GUESS = { type: 'string', maxLength: 1_000 } as const;

/** @throws FORBIDDEN if password sign-in is disabled */
export function requirePasswords({ insteadOfPasswords }: SignIn): void {
  if (insteadOfPasswords === undefined) return;
  const message = `Password sign-in is disabled. Sign in with ${insteadOfPasswords}.`;
  throw fail('FORBIDDEN', { message });
}

/** Finds the user with this address and password. @throws SIGN_IN_FAILED, SIGN_IN_SLOWED */
export async function recognise(
  { database, proxies }: SignIn,
  request: IncomingMessage,
  email: string,
  password: string,
): Promise<User> {
  const attempt = await beginAttempt(database, { email, place: clientPlace(request, proxies) });
  const user = await findBySignIn(database, email, password);
  if (user === undefined) throw fail('SIGN_IN_FAILED');
  await attempt.succeeded();
  return user;
}

/** Begins a user's session, sets its cookie, and returns the session in the page's form. */
export async function signIn(parts: SignIn, response: ServerResponse, user: User, way: SignInWay): Promise<object> {
  const session = await beginSession(parts.database, user, way, parts.times);
  giveSession(response, session);
  return showSession(parts, session);
}

export function giveSession(response: ServerResponse, { token, createdAt, expiresAt }: Session): void {
  const maxAgeSeconds = Math.floor((expiresAt.getTime() - createdAt.getTime()) / 1_000);
  setCookie(response, SESSION_COOKIE, token, { sameSite: 'Strict', maxAgeSeconds });
}

/** Clears the session cookie and answers without a body. */
export function signOut(response: ServerResponse): void {
  setCookie(response, SESSION_COOKIE, '', { sameSite: 'Strict' });
  response.writeHead(204);
  response.end();
}

export async function showSession({ database, insteadOfPasswords }: SignIn, session: Session): Promise<object> {
  const { user, createdAt, expiresAt } = session;
  const account = await readAccountRow(database, user.accountId);
  return {
    user: { id: user.id, email: user.email, passwordChangedAt: user.passwordChangedAt.toISOString() },
    account: { id: account.id, name: account.name, status: account.status },
    csrfToken: csrfTokenOf(session),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    passwordSignIn: insteadOfPasswords === undefined,
  };
}

/** The result of `showSession`. */
export const SESSION = object({
  user: object({ id: shape.uuid, email: shape.text, passwordChangedAt: shape.time }),
  account: object({ id: shape.uuid, name: shape.text, status: oneOf('active', 'frozen') }),
  csrfToken: shape.text,
  createdAt: shape.time,
  expiresAt: shape.time,
  passwordSignIn: shape.yes,
});

/** The headers of an answer that begins a session. */
export const SESSION_HEADERS = { 'Set-Cookie': 'The session, which no script can read.' };

/** The answer that ends a session. */
export const SIGNED_OUT = { 204: { description: 'It has ended.', headers: { 'Set-Cookie': 'No session any more.' } } };
