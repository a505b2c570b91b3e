import type { Stores } from '../../../core/accounts/accounts';
import { createKey } from '../../../core/accounts/keys';
import { NEW_KEY_FIELDS, readAccess, readLimits } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { actorOf, OWN_KEY, showOneKey } from './key';

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: NEW_KEY_FIELDS,
} as const;

export function createKeyRoute(stores: Stores & Pick<PluginGateway, 'keys'>): Route {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  return {
    listener: 'public',
    auth: 'session',
    method: 'POST',
    path: '/console/api/keys',
    summary: 'Creates a key; only this answer contains it.',
    body: NEW_KEY,
    answers: { 201: { description: 'The key with its secret.', schema: object({ ...OWN_KEY, key: shape.text }) } },
    errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, session }, request, response) => {
      const { name, allowedModels, expiresAt, allowedAddresses, ...limits } = await readNewKey(request);
      const access = readAccess({ expiresAt, allowedAddresses });
      const wanted = { name, allowedModels, ...access, ...readLimits(limits) };
      const made = await createKey(stores, accountId, wanted, actorOf(session));
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...(await showOneKey(stores.database, made.key)), key: made.apiKey });
    },
  };
}
