import type { Stores } from '../../../core/accounts/accounts';
import { listKeys } from '../../../core/accounts/keys';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { OPERATOR_KEY, showOperatorKey } from './key-fields';

export function listKeysRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts/{accountId}/keys',
    summary: 'List the keys of an account, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of keys.', schema: pageShape(OPERATOR_KEY) } },
    handle: async ({ params, query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listKeys(stores, params['accountId'] ?? '', page);
      sendJson(response, 200, { items: items.map(showOperatorKey), nextCursor });
    },
  };
}
