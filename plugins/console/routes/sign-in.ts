import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import { readAccountRow } from '../../../core/accounts/accounts';
import { PASSWORD } from '../../../core/api/fields';
import { pageRoute, sessionRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import { SESSION_COOKIE, setCookie } from '../../../core/http/cookies';
import { clientPlace, type Proxies } from '../../../core/http/proxies';
import { object, oneOf, orNull, shape } from '../../../core/http/shape';
import { beginAtPlace, beginSignInAttempt } from '../../../core/sign-in/attempts';
import { acceptInvitation } from '../../../core/sign-in/invitations';
import { takeSignInLink } from '../../../core/sign-in/links';
import { EVERYONE, MEMBER_ROLE } from '../../../core/sign-in/member-roles';
import {
  beginSession,
  csrfTokenOf,
  endSession,
  endSessions,
  type Session,
  type SessionTimes,
  type SignInMethod,
} from '../../../core/sign-in/sessions';
import { findBySignIn, type User, updateUser } from '../../../core/sign-in/users';

/** The common parts of the endpoints that begin, show and end sessions. */

interface SignIn {
  readonly database: Knex;
  readonly times: SessionTimes;
  readonly proxies: Proxies;
  /** The identity provider's name if password sign-in is disabled; undefined if passwords are accepted. */
  readonly insteadOfPasswords: string | undefined;
}

/** A password or token that a user tries. The schema does not reveal the real format to an attacker. */
const GUESS = { type: 'string', maxLength: 1_000 } as const;

/** Rejects the request if password sign-in is disabled. @throws FORBIDDEN */
function requirePasswords({ insteadOfPasswords }: SignIn): void {
  if (insteadOfPasswords === undefined) return;
  const message = `Password sign-in is disabled. Sign in with ${insteadOfPasswords}.`;
  throw fail('FORBIDDEN', { message });
}

/** Finds the user with this e-mail address and password. @throws SIGN_IN_FAILED, SIGN_IN_SLOWED */
async function recognise(
  { database, proxies }: SignIn,
  request: IncomingMessage,
  email: string,
  password: string,
): Promise<User> {
  const attempt = await beginSignInAttempt(database, { email, place: clientPlace(request, proxies) });
  const user = await findBySignIn(database, email, password);
  if (user === undefined) throw fail('SIGN_IN_FAILED');
  await attempt.succeeded();
  return user;
}

/** Begins a user's session, sets its cookie, and returns the session as the JSON that the console's page expects. */
async function signIn(parts: SignIn, response: ServerResponse, user: User, way: SignInMethod): Promise<object> {
  const session = await beginSession(parts.database, user, way, parts.times);
  giveSession(response, session);
  return showSession(parts, session);
}

export function giveSession(response: ServerResponse, { token, createdAt, expiresAt }: Session): void {
  const maxAgeSeconds = Math.floor((expiresAt.getTime() - createdAt.getTime()) / 1_000);
  setCookie(response, SESSION_COOKIE, token, { sameSite: 'Strict', maxAgeSeconds });
}

/** Clears the session cookie and answers without a body. */
function signOut(response: ServerResponse): void {
  setCookie(response, SESSION_COOKIE, '', { sameSite: 'Strict' });
  response.writeHead(204);
  response.end();
}

async function showSession({ database, insteadOfPasswords }: SignIn, session: Session): Promise<object> {
  const { user, createdAt, expiresAt } = session;
  const account = await readAccountRow(database, user.accountId);
  return {
    user: {
      id: user.id,
      email: user.email,
      role: user.role,
      passwordChangedAt: user.passwordChangedAt.toISOString(),
    },
    account: { id: account.id, name: account.name, status: account.status },
    csrfToken: csrfTokenOf(session),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    passwordSignIn: insteadOfPasswords === undefined,
  };
}

/** The result of `showSession`. */
const SESSION = object({
  user: object({ id: shape.uuid, email: shape.text, role: MEMBER_ROLE, passwordChangedAt: shape.time }),
  account: object({ id: shape.uuid, name: shape.text, status: oneOf('active', 'frozen') }),
  csrfToken: shape.text,
  createdAt: shape.time,
  expiresAt: shape.time,
  passwordSignIn: shape.yes,
});

/** The headers of an answer that begins a session. */
const SESSION_HEADERS = { 'Set-Cookie': 'The session, which no script can read.' };

/** The API schema of the answer to a request that ends a session. */
const SIGNED_OUT = { 204: { description: 'It has ended.', headers: { 'Set-Cookie': 'No session any more.' } } };

const WAYS = object({ password: shape.yes, oidc: orNull(object({ name: shape.text, startUrl: shape.text })) });

const CREDENTIALS = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'password'],
  properties: { email: GUESS, password: GUESS },
} as const;

const LINK = {
  type: 'object',
  additionalProperties: false,
  required: ['token'],
  properties: { token: GUESS },
} as const;

const ACCEPTANCE = {
  type: 'object',
  additionalProperties: false,
  required: ['token', 'password'],
  properties: { token: GUESS, password: PASSWORD },
} as const;

const NEW_PASSWORD = {
  type: 'object',
  additionalProperties: false,
  required: ['current', 'password'],
  properties: { current: GUESS, password: PASSWORD },
} as const;

export function signInRoutes(parts: SignIn, provider: { readonly name: string } | undefined): readonly Route[] {
  const { database } = parts;
  return [
    pageRoute('GET /console/api/sign-in', {
      summary: 'The available ways to sign in.',
      answers: { 200: { description: 'The ways.', schema: WAYS } },
      handle: async () => ({
        password: parts.insteadOfPasswords === undefined,
        oidc: provider === undefined ? null : { name: provider.name, startUrl: '/console/api/oidc/start' },
      }),
    }),
    pageRoute('POST /console/api/session', {
      summary: 'Signs in with a password.',
      body: CREDENTIALS,
      answers: { 201: { description: 'The session.', schema: SESSION, headers: SESSION_HEADERS } },
      errors: ['FORBIDDEN', 'SIGN_IN_FAILED', 'SIGN_IN_SLOWED'],
      handle: async ({ body: { email, password } }, request, response) => {
        requirePasswords(parts);
        return signIn(parts, response, await recognise(parts, request, email, password), 'password');
      },
    }),
    pageRoute('POST /console/api/session/link', {
      summary: 'Signs in with the token of a one-time link.',
      body: LINK,
      answers: { 201: { description: 'The session.', schema: SESSION, headers: SESSION_HEADERS } },
      errors: ['SIGN_IN_FAILED'],
      handle: async ({ body: { token } }, _request, response) =>
        signIn(parts, response, await takeSignInLink(database, token), 'link'),
    }),
    pageRoute('POST /console/api/session/invitation', {
      summary: 'Accepts an invitation: makes its user with this password, and signs the user in.',
      body: ACCEPTANCE,
      answers: { 201: { description: 'The session.', schema: SESSION, headers: SESSION_HEADERS } },
      errors: ['SIGN_IN_FAILED', 'SIGN_IN_SLOWED'],
      handle: async ({ body: { token, password } }, request, response) => {
        const attempt = await beginAtPlace(database, clientPlace(request, parts.proxies));
        const user = await acceptInvitation(database, token, password);
        await attempt.succeeded();
        return signIn(parts, response, user, 'invitation');
      },
    }),
    sessionRoute('GET /console/api/session', {
      roles: EVERYONE,
      summary: 'The session, and the token that changes must carry.',
      answers: { 200: { description: 'The session.', schema: SESSION } },
      handle: ({ session }) => showSession(parts, session),
    }),
    sessionRoute('DELETE /console/api/session', {
      roles: EVERYONE,
      summary: 'Signs out.',
      answers: SIGNED_OUT,
      handle: async ({ session }, _request, response) => {
        await endSession(database, session);
        signOut(response);
      },
    }),
    sessionRoute('DELETE /console/api/sessions', {
      roles: EVERYONE,
      summary: 'Signs out everywhere: all sessions of the user end.',
      answers: SIGNED_OUT,
      handle: async ({ session }, _request, response) => {
        await endSessions(database, session.user.id);
        signOut(response);
      },
    }),
    sessionRoute('PUT /console/api/password', {
      roles: EVERYONE,
      summary: 'Sets a new password; all other sessions of the user end.',
      body: NEW_PASSWORD,
      answers: { 200: { description: 'The new session.', schema: SESSION, headers: SESSION_HEADERS } },
      errors: ['FORBIDDEN', 'SIGN_IN_FAILED', 'SIGN_IN_SLOWED'],
      handle: async ({ session, body: { current, password } }, request, response) => {
        requirePasswords(parts);
        const { id } = await recognise(parts, request, session.user.email, current);
        const user = await updateUser(database, id, { password }, { actor: `user:${id}` });
        return signIn(parts, response, user, 'password');
      },
    }),
  ];
}
