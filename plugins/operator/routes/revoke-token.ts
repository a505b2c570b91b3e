import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { revokeOperatorToken } from '../../../core/operators/tokens';
import { showToken, TOKEN } from './token';

export function revokeTokenRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'owner',
    method: 'DELETE',
    path: '/admin/v1/tokens/{tokenId}',
    summary: 'Revoke a token; answers when no node accepts it any more.',
    answers: { 200: { description: 'The token.', schema: TOKEN } },
    handle: async ({ params, operator }, _request, response) => {
      const token = await revokeOperatorToken(database, params['tokenId'] ?? '', operator.actor);
      sendJson(response, 200, showToken(token));
    },
  };
}
