import { type Stores, setAccountStatus } from '../../../core/accounts/accounts';
import { NOTHING } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { ACCOUNT, showAccount } from './account';

/** The endpoints that set an account's status. They differ only in that status. */
const CHANGES = {
  freeze: { status: 'frozen', summary: 'Freeze an account: refuse all its further calls.' },
  unfreeze: { status: 'active', summary: 'Unfreeze an account: accept its calls again.' },
} as const;

export function changeAccountStatusRoute(stores: Stores, verb: keyof typeof CHANGES): Route {
  const { status, summary } = CHANGES[verb];
  const readNothing = jsonBody<object>(NOTHING);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: `/admin/v1/accounts/{accountId}/${verb}`,
    summary,
    body: NOTHING,
    answers: { 200: { description: 'The account.', schema: ACCOUNT } },
    handle: async ({ params, operator }, request, response) => {
      await readNothing(request);
      sendJson(
        response,
        200,
        showAccount(await setAccountStatus(stores, params['accountId'] ?? '', status, operator.actor)),
      );
    },
  };
}
