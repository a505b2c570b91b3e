import { listAccounts, type Stores } from '../../../core/accounts/accounts';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { pageOf as pageShape } from '../../../core/http/shape';
import { ACCOUNT, showAccount } from './account';

export function listAccountsRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts',
    summary: 'List accounts, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of accounts.', schema: pageShape(ACCOUNT) } },
    handle: async ({ query }, _request, response) => {
      const { items, nextCursor } = await listAccounts(stores, pageOf(readQuery(query, PAGE_READERS)));
      sendJson(response, 200, { items: items.map(showAccount), nextCursor });
    },
  };
}
