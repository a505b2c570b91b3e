import { readAccount, type Stores } from '../../../core/accounts/accounts';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { ACCOUNT, showAccount } from './account';

export function showAccountRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts/{accountId}',
    summary: 'Show an account with its balance.',
    answers: { 200: { description: 'The account.', schema: ACCOUNT } },
    handle: async ({ params }, _request, response) => {
      sendJson(response, 200, showAccount(await readAccount(stores, params['accountId'] ?? '')));
    },
  };
}
