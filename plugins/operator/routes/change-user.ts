import type { Knex } from 'knex';
import { PASSWORD } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { updateUser } from '../../../core/sign-in/users';
import { showUser, USER } from './user';

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
