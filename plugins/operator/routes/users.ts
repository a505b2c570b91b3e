import type { Knex } from 'knex';
import { NOTHING, PASSWORD } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { saidPublicUrl } from '../../../core/http/public-url';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, oneOf, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { unbindIdentity } from '../../../core/sign-in/identities';
import { makeSignInLink } from '../../../core/sign-in/links';
import { createUser, listUsers, type User, updateUser } from '../../../core/sign-in/users';

/** Shows a console user to operators, without the password and its hash. */
function showUser({ id, accountId, email, status, createdAt, passwordChangedAt, identity }: User): object {
  return {
    id,
    accountId,
    email,
    status,
    createdAt: createdAt.toISOString(),
    passwordChangedAt: passwordChangedAt.toISOString(),
    identity: identity === null ? null : { ...identity, boundAt: identity.boundAt.toISOString() },
  };
}

/** The result of `showUser` in the OpenAPI document. */
export const USER = object({
  id: shape.uuid,
  accountId: shape.uuid,
  email: shape.text,
  status: oneOf('active', 'disabled'),
  createdAt: shape.time,
  passwordChangedAt: shape.time,
  identity: orNull({
    ...object({ issuer: shape.text, subject: shape.text, boundAt: shape.time }),
    description: 'The only identity of a provider that signs this user in; null until the first sign-in by one.',
  }),
});

export function listUsersRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts/{accountId}/users',
    summary: 'List the users of an account, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of users.', schema: pageShape(USER) } },
    handle: async ({ params, query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listUsers(database, params['accountId'] ?? '', page);
      sendJson(response, 200, { items: items.map(showUser), nextCursor });
    },
  };
}

const EMAIL = {
  type: 'string',
  maxLength: 254,
  pattern: '^[^@\\s\\p{Cc}\\p{Cs}]+@[^@\\s\\p{Cc}\\p{Cs}]+$',
  'x-expected': 'an e-mail address',
} as const;

const NEW_USER = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'password'],
  properties: { email: EMAIL, password: PASSWORD },
  example: { email: 'ada@example.com', password: 'correct horse battery' },
} as const;

export function createUserRoute(database: Knex): Route {
  const readNewUser = jsonBody<Settings<typeof NEW_USER>>(NEW_USER);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/accounts/{accountId}/users',
    summary: 'Create a user who can sign in to the console and see this account.',
    body: NEW_USER,
    answers: { 201: { description: 'The user.', schema: USER } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      const wanted = await readNewUser(request);
      sendJson(response, 201, showUser(await createUser(database, params['accountId'] ?? '', wanted, operator.actor)));
    },
  };
}

const USER_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { password: PASSWORD, status: { enum: ['active', 'disabled'] } },
  example: { status: 'disabled' },
} as const;

export function changeUserRoute(database: Knex): Route {
  const readChanges = jsonBody<Settings<typeof USER_CHANGES>>(USER_CHANGES);
  return {
    listener: 'admin',
    role: 'write',
    method: 'PATCH',
    path: '/admin/v1/users/{userId}',
    summary: 'Set a new password, or disable or enable a user; open sessions end.',
    body: USER_CHANGES,
    answers: { 200: { description: 'The user.', schema: USER } },
    handle: async ({ params, operator }, request, response) => {
      const changes = await readChanges(request);
      sendJson(response, 200, showUser(await updateUser(database, params['userId'] ?? '', changes, operator.actor)));
    },
  };
}

export function unbindIdentityRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'write',
    method: 'DELETE',
    path: '/admin/v1/users/{userId}/identity',
    summary:
      'Unbind a user from its identity at the provider; open sessions end, and the next identity with its address is bound.',
    answers: { 200: { description: 'The user.', schema: USER } },
    handle: async ({ params, operator }, _request, response) => {
      sendJson(response, 200, showUser(await unbindIdentity(database, params['userId'] ?? '', operator.actor)));
    },
  };
}

const LINK_LIFETIME_MS = 3_600_000;

const LINK = object({
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
  path: shape.text,
  expiresAt: shape.time,
});

export function makeSignInLinkRoute(database: Knex): Route {
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/users/{userId}/sign-in-link',
    summary: 'Create a link that signs a user in to the console once, within an hour; only this answer contains it.',
    body: NOTHING,
    answers: { 201: { description: 'The link.', schema: LINK } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      await readNothing(request);
      const { token, expiresAt } = await makeSignInLink(
        database,
        params['userId'] ?? '',
        LINK_LIFETIME_MS,
        operator.actor,
      );
      // The token is in the fragment, because browsers do not send it and so no log contains it.
      const path = `/console/sign-in#token=${token}`;
      const publicUrl = saidPublicUrl();
      const url = publicUrl === undefined ? null : publicUrl + path;
      sendJson(response, 201, { url, path, expiresAt: expiresAt.toISOString() }, { 'cache-control': 'no-store' });
    },
  };
}
