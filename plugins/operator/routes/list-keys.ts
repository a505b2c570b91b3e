import type { Stores } from '../../../core/accounts/accounts';
import { listKeys } from '../../../core/accounts/keys';
import { KEY, showKey } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, pageOf as pageShape } from '../../../core/http/shape';

export function listKeysRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    method: 'GET',
    path: '/admin/v1/accounts/{accountId}/keys',
    summary: 'List the keys of an account, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of keys.', schema: pageShape(object(KEY)) } },
    handle: async ({ params, query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listKeys(stores, params['accountId'] ?? '', page);
      sendJson(response, 200, { items: items.map(showKey), nextCursor });
    },
  };
}
