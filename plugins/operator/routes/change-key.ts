import type { Stores } from '../../../core/accounts/accounts';
import { updateKey } from '../../../core/accounts/keys';
import { KEY_CHANGE_FIELDS, readAccess, readLimits } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { DEBUG, OPERATOR_KEY, showOperatorKey } from './key-fields';
import { checkMarkup, MARKUP_CHANGE } from './markup';

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { ...KEY_CHANGE_FIELDS, markup: MARKUP_CHANGE, debug: DEBUG },
  example: { balanceLimit: '20.00', callsPerMinute: 60 },
} as const;

export function changeKeyRoute(stores: Stores & Pick<PluginGateway, 'catalog'>): Route {
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);
  return {
    listener: 'admin',
    role: 'write',
    method: 'PATCH',
    path: '/admin/v1/keys/{keyId}',
    summary: 'Change name, limits, models, markup, expiry or addresses of a key; null removes.',
    body: KEY_CHANGES,
    answers: { 200: { description: 'The key.', schema: OPERATOR_KEY } },
    errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, request, response) => {
      const { name, allowedModels, markup, debug, expiresAt, allowedAddresses, ...limits } = await readChanges(request);
      checkMarkup(stores.catalog, markup);
      const access = readAccess({ expiresAt, allowedAddresses });
      const changes = { name, allowedModels, markup, debug, ...access, ...readLimits(limits) };
      sendJson(response, 200, showOperatorKey(await updateKey(stores, params['keyId'] ?? '', changes, operator.actor)));
    },
  };
}
