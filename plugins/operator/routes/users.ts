import type { Knex } from 'knex';
import { PASSWORD } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { saidPublicUrl } from '../../../core/http/public-url';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
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
const USER = object({
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

const USER_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { password: PASSWORD, status: { enum: ['active', 'disabled'] } },
  example: { status: 'disabled' },
} as const;

const LINK_LIFETIME_MS = 3_600_000;

const LINK = object({
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
  path: shape.text,
  expiresAt: shape.time,
});

const SHOWN = { 200: { description: 'The user.', schema: USER } };

export function userRoutes(database: Knex): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/users', {
      role: 'write',
      summary: 'Create a user who can sign in to the console and see this account.',
      body: NEW_USER,
      answers: { 201: SHOWN[200] },
      errors: ['CONFLICT'],
      handle: async ({ body, params, operator }) =>
        showUser(await createUser(database, params.accountId, body, operator.actor)),
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/users', {
      role: 'read',
      summary: 'List the users of an account, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of users.', schema: pageShape(USER) } },
      handle: async ({ params, filters }) => {
        const { items, nextCursor } = await listUsers(database, params.accountId, pageOf(filters));
        return { items: items.map(showUser), nextCursor };
      },
    }),
    adminRoute('PATCH /admin/v1/users/{userId}', {
      role: 'write',
      summary: 'Set a new password, or disable or enable a user; open sessions end.',
      body: USER_CHANGES,
      answers: SHOWN,
      handle: async ({ body, params, operator }) =>
        showUser(await updateUser(database, params.userId, body, operator.actor)),
    }),
    adminRoute('DELETE /admin/v1/users/{userId}/identity', {
      role: 'write',
      summary:
        'Unbind a user from its identity at the provider; open sessions end, and the next identity with its address is bound.',
      answers: SHOWN,
      handle: async ({ params, operator }) => showUser(await unbindIdentity(database, params.userId, operator.actor)),
    }),
    adminRoute('POST /admin/v1/users/{userId}/sign-in-link', {
      role: 'write',
      summary: 'Create a link that signs a user in to the console once, within an hour; only this answer contains it.',
      answers: { 201: { description: 'The link.', schema: LINK } },
      errors: ['CONFLICT'],
      handle: async ({ params, operator }) => {
        const { token, expiresAt } = await makeSignInLink(database, params.userId, LINK_LIFETIME_MS, operator.actor);
        // The token is in the fragment, because browsers do not send fragments, so that no log contains the token.
        const path = `/console/sign-in#token=${token}`;
        const publicUrl = saidPublicUrl();
        return { url: publicUrl === undefined ? null : publicUrl + path, path, expiresAt: expiresAt.toISOString() };
      },
    }),
  ];
}
