import type { Knex } from 'knex';
import { PASSWORD } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { createUser } from '../../../core/sign-in/users';
import { showUser, USER } from './user';

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
