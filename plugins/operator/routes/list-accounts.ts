import { listAccounts, type Stores } from '../../../core/accounts/accounts';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readText } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { ACCOUNT, showAccount } from './account';

const READERS = { search: readText, ...PAGE_READERS };

export function listAccountsRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts',
    summary:
      'List accounts, newest first; `search` is a part of a name, an id, an e-mail address or the shown end of a key.',
    query: READERS,
    answers: { 200: { description: 'A page of accounts.', schema: pageShape(ACCOUNT) } },
    handle: async ({ query }, _request, response) => {
      const filters = readQuery(query, READERS);
      const { items, nextCursor } = await listAccounts(stores, pageOf(filters), filters.search);
      sendJson(response, 200, { items: items.map(showAccount), nextCursor });
    },
  };
}
