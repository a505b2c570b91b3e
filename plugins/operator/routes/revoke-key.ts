import type { Stores } from '../../../core/accounts/accounts';
import { revokeKey } from '../../../core/accounts/keys';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { OPERATOR_KEY, showOperatorKey } from './key-fields';

export function revokeKeyRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'write',
    method: 'DELETE',
    path: '/admin/v1/keys/{keyId}',
    summary: 'Revoke a key; answers when no node accepts it any more.',
    answers: { 200: { description: 'The key.', schema: OPERATOR_KEY } },
    errors: ['LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, _request, response) => {
      sendJson(response, 200, showOperatorKey(await revokeKey(stores, params['keyId'] ?? '', operator.actor)));
    },
  };
}
