import type { Stores } from '../../../core/accounts/accounts';
import { updateAccount } from '../../../core/accounts/keys';
import { TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { ACCOUNT, showAccount } from './account';
import { checkMarkup, MARKUP_CHANGE } from './markup';

const ACCOUNT_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { name: TEXT, markup: MARKUP_CHANGE },
  example: { markup: '1.25' },
} as const;

export function changeAccountRoute(gateway: Stores & Pick<PluginGateway, 'catalog'>): Route {
  const readChanges = jsonBody<Settings<typeof ACCOUNT_CHANGES>>(ACCOUNT_CHANGES);
  return {
    listener: 'admin',
    role: 'write',
    method: 'PATCH',
    path: '/admin/v1/accounts/{accountId}',
    summary: 'Rename an account, or change the markup of its keys; null removes it.',
    body: ACCOUNT_CHANGES,
    answers: { 200: { description: 'The account.', schema: ACCOUNT } },
    errors: ['LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, request, response) => {
      const changes = await readChanges(request);
      checkMarkup(gateway.catalog, changes.markup);
      sendJson(
        response,
        200,
        showAccount(await updateAccount(gateway, params['accountId'] ?? '', changes, operator.actor)),
      );
    },
  };
}
