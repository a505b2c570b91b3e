import { createAccount, type Stores } from '../../../core/accounts/accounts';
import { TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { ACCOUNT, showAccount } from './account';
import { checkMarkup, NEW_MARKUP } from './markup';

const NEW_ACCOUNT = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT, markup: NEW_MARKUP },
  example: { name: 'acme' },
} as const;

export function createAccountRoute(stores: Stores & Pick<PluginGateway, 'catalog'>): Route {
  const readNewAccount = jsonBody<Settings<typeof NEW_ACCOUNT>>(NEW_ACCOUNT);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/accounts',
    summary: 'Create an account.',
    body: NEW_ACCOUNT,
    answers: { 201: { description: 'The account.', schema: ACCOUNT } },
    handle: async ({ operator }, request, response) => {
      const wanted = await readNewAccount(request);
      checkMarkup(stores.catalog, wanted.markup);
      sendJson(response, 201, showAccount(await createAccount(stores, wanted, operator.actor)));
    },
  };
}
