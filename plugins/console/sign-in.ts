import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import { readAccountRow } from '../../core/accounts';
import { pageRoute, sessionRoute } from '../../core/console-route';
import { SESSION_COOKIE, setCookie } from '../../core/cookies';
import { fail } from '../../core/errors';
import { PASSWORD } from '../../core/fields';
import { jsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import {
  beginSession,
  csrfTokenOf,
  endSession,
  endSessions,
  type Session,
  type SessionTimes,
  type SignInWay,
} from '../../core/sessions';
import type { Settings } from '../../core/settings';
import { beginAttempt } from '../../core/sign-in-attempts';
import { takeSignInLink } from '../../core/sign-in-links';
import { findBySignIn, type User, updateUser } from '../../core/users';
import { clientPlace } from './client-place';

/** Whoever tries passwords learns nothing of what an e-mail address or a password may look like. */
const SIGN_IN = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'password'],
  properties: { email: { type: 'string', maxLength: 1_000 }, password: { type: 'string', maxLength: 1_000 } },
} as const;

const LINK = {
  type: 'object',
  additionalProperties: false,
  required: ['token'],
  properties: { token: { type: 'string', maxLength: 1_000 } },
} as const;

const NEW_PASSWORD = {
  type: 'object',
  additionalProperties: false,
  required: ['current', 'password'],
  properties: { current: { type: 'string', maxLength: 1_000 }, password: PASSWORD },
} as const;

export interface SignIn {
  readonly database: Knex;
  readonly times: SessionTimes;
  /** Proxies of ours in front, each of which adds to `X-Forwarded-For`. */
  readonly proxies: number;
}

export function signInRoutes({ database, times, proxies }: SignIn): Route[] {
  const readSignIn = jsonBody<Settings<typeof SIGN_IN>>(SIGN_IN);
  const readLink = jsonBody<Settings<typeof LINK>>(LINK);
  const readNewPassword = jsonBody<Settings<typeof NEW_PASSWORD>>(NEW_PASSWORD);

  /** @throws SIGN_IN_FAILED, SIGN_IN_SLOWED */
  const recognise = async (request: IncomingMessage, email: string, password: string): Promise<User> => {
    const attempt = await beginAttempt(database, { email, place: clientPlace(request, proxies) });
    const user = await findBySignIn(database, email, password);
    if (user === undefined) throw fail('SIGN_IN_FAILED');
    await attempt.succeeded();
    return user;
  };
  const answer = async (response: ServerResponse, status: number, user: User, way: SignInWay) => {
    const session = await beginSession(database, user, way, times);
    giveSession(response, session);
    sendJson(response, status, await showSession(database, session));
  };

  return [
    pageRoute('POST', '/session', async (_visit, request, response) => {
      const { email, password } = await readSignIn(request);
      await answer(response, 201, await recognise(request, email, password), 'password');
    }),
    pageRoute('POST', '/session/link', async (_visit, request, response) => {
      const { token } = await readLink(request);
      await answer(response, 201, await takeSignInLink(database, token), 'link');
    }),
    sessionRoute('GET', '/session', async ({ session }, _request, response) => {
      sendJson(response, 200, await showSession(database, session));
    }),
    sessionRoute('DELETE', '/session', async ({ session }, _request, response) => {
      await endSession(database, session);
      signOut(response);
    }),
    sessionRoute('DELETE', '/sessions', async ({ session }, _request, response) => {
      await endSessions(database, session.user.id);
      signOut(response);
    }),
    sessionRoute('PUT', '/password', async ({ session }, request, response) => {
      const { current, password } = await readNewPassword(request);
      const { id } = await recognise(request, session.user.email, current);
      const user = await updateUser(database, id, { password }, `user:${id}`);
      await answer(response, 200, user, 'password');
    }),
  ];
}

export function giveSession(response: ServerResponse, { token, createdAt, expiresAt }: Session): void {
  const maxAgeSeconds = Math.floor((expiresAt.getTime() - createdAt.getTime()) / 1_000);
  setCookie(response, SESSION_COOKIE, token, { sameSite: 'Strict', maxAgeSeconds });
}

function signOut(response: ServerResponse): void {
  setCookie(response, SESSION_COOKIE, '', { sameSite: 'Strict' });
  response.writeHead(204);
  response.end();
}

async function showSession(database: Knex, session: Session): Promise<object> {
  const { user, createdAt, expiresAt } = session;
  const account = await readAccountRow(database, user.accountId);
  return {
    user: { id: user.id, email: user.email, passwordChangedAt: user.passwordChangedAt.toISOString() },
    account: { id: account.id, name: account.name, status: account.status },
    csrfToken: csrfTokenOf(session),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}
