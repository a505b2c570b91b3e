import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { unbindIdentity } from '../../../core/sign-in/identities';
import { showUser, USER } from './user';

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
