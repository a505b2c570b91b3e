import type { Stores } from '../../../core/accounts/accounts';
import { createKey } from '../../../core/accounts/keys';
import { NEW_KEY_FIELDS, readAccess, readLimits } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { DEBUG, OPERATOR_KEY_FIELDS, showOperatorKey } from './key-fields';
import { checkMarkup, NEW_MARKUP } from './markup';

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { ...NEW_KEY_FIELDS, markup: NEW_MARKUP, debug: DEBUG },
  example: { name: 'web', balanceLimit: '10.00' },
} as const;

export function createKeyRoute(stores: Stores & Pick<PluginGateway, 'keys' | 'catalog'>): Route {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/accounts/{accountId}/keys',
    summary: 'Create an API key; only this answer contains it.',
    body: NEW_KEY,
    answers: {
      201: { description: 'The key with its secret.', schema: object({ ...OPERATOR_KEY_FIELDS, key: shape.text }) },
    },
    errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, request, response) => {
      const { name, allowedModels, markup, debug, expiresAt, allowedAddresses, ...limits } = await readNewKey(request);
      checkMarkup(stores.catalog, markup);
      const access = readAccess({ expiresAt, allowedAddresses });
      const wanted = { name, allowedModels, markup, debug, ...access, ...readLimits(limits) };
      const made = await createKey(stores, params['accountId'] ?? '', wanted, operator.actor);
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...showOperatorKey(made.key), key: made.apiKey }, { 'cache-control': 'no-store' });
    },
  };
}
