import { pushKeysOf } from '../../../core/accounts/keys';
import { PASSWORD } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { saidPublicUrl } from '../../../core/http/public-url';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import { unbindIdentity } from '../../../core/sign-in/identities';
import { makeSignInLink } from '../../../core/sign-in/links';
import { MEMBER_ROLE, MEMBER_ROLE_NAMES } from '../../../core/sign-in/member-roles';
import { removeUser } from '../../../core/sign-in/members';
import { createUser, listUsers, updateUser } from '../../../core/sign-in/users';
import { changerOf, restrictionOf } from './users-of-console';

/** A user of the console in answers, without the password and its hash. */
export const USER = object({
  id: shape.uuid,
  accountId: shape.uuid,
  email: shape.text,
  role: MEMBER_ROLE,
  status: oneOf('active', 'disabled', 'removed'),
  createdAt: shape.time,
  passwordChangedAt: shape.time,
  identity: orNull({
    ...object({ issuer: shape.text, subject: shape.text, boundAt: shape.time }),
    description: 'The only identity of a provider that signs this user in; null until the first sign-in by one.',
  }),
});

export const EMAIL = {
  type: 'string',
  maxLength: 254,
  pattern: '^[^@\\s\\p{Cc}\\p{Cs}]+@[^@\\s\\p{Cc}\\p{Cs}]+$',
  'x-expected': 'an e-mail address',
} as const;

/** The role of a user in the body of a request. */
export const USER_ROLE = { enum: MEMBER_ROLE_NAMES } as const;

const NEW_USER = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'password'],
  properties: { email: EMAIL, password: PASSWORD, role: USER_ROLE },
  example: { email: 'ada@example.com', password: 'correct horse battery', role: 'admin' },
} as const;

const USER_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { password: PASSWORD, status: { enum: ['active', 'disabled'] }, role: USER_ROLE },
  example: { status: 'disabled' },
} as const;

const LINK_LIFETIME_MS = 3_600_000;

const LINK = object({
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
  path: shape.text,
  expiresAt: shape.time,
});

const SHOWN = { 200: { description: 'The user.', schema: USER } };

export function userRoutes(gateway: PluginGateway): readonly Route[] {
  const { database } = gateway;
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/users', {
      role: 'write',
      summary: 'Create a user who can sign in to the console and see this account.',
      body: NEW_USER,
      answers: { 201: SHOWN[200] },
      errors: ['CONFLICT'],
      handle: ({ body, params, operator }) => createUser(database, params.accountId, body, operator.actor),
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/users', {
      role: 'read',
      summary: 'List the users of an account, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of users.', schema: pageShape(USER) } },
      handle: ({ params, filters, session }) =>
        listUsers(database, params.accountId, pageOf(filters), restrictionOf(session)),
    }),
    adminRoute('PATCH /admin/v1/users/{userId}', {
      role: 'write',
      summary:
        'Change the role of a user, set a new password, or disable or enable the user; the last two end open sessions.',
      body: USER_CHANGES,
      answers: SHOWN,
      errors: ['CONFLICT'],
      handle: ({ body, params, operator }) => updateUser(database, params.userId, body, { actor: operator.actor }),
    }),
    adminRoute('DELETE /admin/v1/users/{userId}', {
      role: 'write',
      summary: 'Remove a user; answers when sessions have ended and no node accepts the keys of the user.',
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: ({ params, ...asked }) => removeUser(gateway, params.userId, changerOf(asked)),
    }),
    adminRoute('DELETE /admin/v1/users/{userId}/identity', {
      role: 'write',
      summary:
        'Unbind a user from its identity at the provider; open sessions end, and the next identity with its address is bound.',
      answers: SHOWN,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params, operator }) => {
        const user = await unbindIdentity(database, params.userId, operator.actor);
        await pushKeysOf(gateway, user.id);
        return user;
      },
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
