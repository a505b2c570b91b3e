import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { listUsers } from '../../../core/sign-in/users';
import { showUser, USER } from './user';

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
