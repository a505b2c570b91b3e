import type { Stores } from '../../../core/accounts/accounts';
import { findKey, revokeKey } from '../../../core/accounts/keys';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import { actorOf, OWN_KEY, showOneKey } from './key';

export function revokeKeyRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'DELETE',
    path: '/console/api/keys/{keyId}',
    summary: 'Revokes a key; answers when no node accepts it any more.',
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    errors: ['LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, params, session }, _request, response) => {
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const revoked = await revokeKey(stores, id, actorOf(session));
      sendJson(response, 200, await showOneKey(stores.database, revoked));
    },
  };
}
