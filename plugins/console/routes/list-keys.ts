import type { Stores } from '../../../core/accounts/accounts';
import { listKeys } from '../../../core/accounts/keys';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readText, wordReader } from '../../../core/http/query';
import { object, pageOf as pageShape } from '../../../core/http/shape';
import { OWN_KEY, showKeys } from './key';

const READERS = { ...PAGE_READERS, search: readText, status: wordReader(['active', 'revoked']) };

export function listKeysRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/keys',
    summary: 'The keys of the account, newest first.',
    query: READERS,
    answers: { 200: { description: 'A page of keys.', schema: pageShape(object(OWN_KEY)) } },
    handle: async ({ accountId, query }, _request, response) => {
      const { search, status, ...page } = readQuery(query, READERS);
      const { items, nextCursor } = await listKeys(stores, accountId, pageOf(page), { search, status });
      sendJson(response, 200, { items: await showKeys(stores.database, items), nextCursor });
    },
  };
}
