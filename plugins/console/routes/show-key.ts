import type { Stores } from '../../../core/accounts/accounts';
import { findKey } from '../../../core/accounts/keys';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import { OWN_KEY, showOneKey } from './key';

export function showKeyRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/keys/{keyId}',
    summary: 'One key.',
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    handle: async ({ accountId, params }, _request, response) => {
      const key = await findKey(stores, accountId, params['keyId'] ?? '');
      sendJson(response, 200, await showOneKey(stores.database, key));
    },
  };
}
