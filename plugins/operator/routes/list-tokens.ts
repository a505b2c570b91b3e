import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { listOperatorTokens } from '../../../core/operators/tokens';
import { showToken, TOKEN } from './token';

export function listTokensRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/tokens',
    summary: 'List the named tokens of operators, newest first, revoked and expired ones too.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of tokens.', schema: pageShape(TOKEN) } },
    handle: async ({ query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listOperatorTokens(database, page);
      sendJson(response, 200, { items: items.map(showToken), nextCursor });
    },
  };
}
