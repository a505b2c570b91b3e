import type { Knex } from 'knex';
import { PASSWORD } from '../../core/fields';
import { jsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { saidPublicUrl } from '../../core/public-url';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { object, oneOf, orNull, pageOf as pageShape, shape } from '../../core/shape';
import { makeSignInLink } from '../../core/sign-in-links';
import { createUser, listUsers, type User, updateUser } from '../../core/users';
import { ADMIN, NOTHING } from './fields';

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

/** People who sign in to the console. No answer and no audit row has a password or what is stored of it. */
export function userRoutes(database: Knex): Route[] {
  const readNewUser = jsonBody<Settings<typeof NEW_USER>>(NEW_USER);
  const readNothing = jsonBody<Settings<typeof NOTHING>>(NOTHING);
  const readChanges = jsonBody<Settings<typeof USER_CHANGES>>(USER_CHANGES);
  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/accounts/{accountId}/users',
      summary: 'Let a person sign in to the console and see this account.',
      body: NEW_USER,
      answers: { 201: { description: 'The user.', schema: USER } },
      errors: ['CONFLICT'],
      handle: async ({ params }, request, response) => {
        const wanted = await readNewUser(request);
        sendJson(response, 201, toJson(await createUser(database, params['accountId'] ?? '', wanted, ADMIN)));
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/accounts/{accountId}/users',
      summary: 'List who can sign in to an account, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of users.', schema: pageShape(USER) } },
      handle: async ({ params, query }, _request, response) => {
        const page = pageOf(readQuery(query, PAGE_READERS));
        const { items, nextCursor } = await listUsers(database, params['accountId'] ?? '', page);
        sendJson(response, 200, { items: items.map(toJson), nextCursor });
      },
    },
    {
      listener: 'admin',
      method: 'PATCH',
      path: '/admin/v1/users/{userId}',
      summary: 'Set a new password, or disable or enable a user; open sessions end.',
      body: USER_CHANGES,
      answers: { 200: { description: 'The user.', schema: USER } },
      handle: async ({ params }, request, response) => {
        const changes = await readChanges(request);
        sendJson(response, 200, toJson(await updateUser(database, params['userId'] ?? '', changes, ADMIN)));
      },
    },
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/users/{userId}/sign-in-link',
      summary: 'Make a link that signs a user in to the console once, within an hour; it is in this answer only.',
      body: NOTHING,
      answers: { 201: { description: 'The link.', schema: LINK } },
      errors: ['CONFLICT'],
      handle: async ({ params }, request, response) => {
        await readNothing(request);
        const { token, expiresAt } = await makeSignInLink(database, params['userId'] ?? '', LINK_LIFETIME_MS, ADMIN);
        // In the fragment, which browsers send to nobody: no log has it.
        const path = `/console/sign-in#token=${token}`;
        const publicUrl = saidPublicUrl();
        const url = publicUrl === undefined ? null : publicUrl + path;
        sendJson(response, 201, { url, path, expiresAt: expiresAt.toISOString() }, { 'cache-control': 'no-store' });
      },
    },
  ];
}

function toJson({ id, accountId, email, status, createdAt, passwordChangedAt }: User): object {
  return {
    id,
    accountId,
    email,
    status,
    createdAt: createdAt.toISOString(),
    passwordChangedAt: passwordChangedAt.toISOString(),
  };
}

const USER = object({
  id: shape.uuid,
  accountId: shape.uuid,
  email: shape.text,
  status: oneOf('active', 'disabled'),
  createdAt: shape.time,
  passwordChangedAt: shape.time,
});

const LINK_LIFETIME_MS = 3_600_000;

const LINK = object({
  url: orNull({ type: 'string', description: 'Null where PUBLIC_URL is not set: then `path` of the public listener.' }),
  path: shape.text,
  expiresAt: shape.time,
});
