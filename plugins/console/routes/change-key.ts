import type { Stores } from '../../../core/accounts/accounts';
import { findKey, updateKey } from '../../../core/accounts/keys';
import { KEY_CHANGE_FIELDS, readAccess, readLimits } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { actorOf, OWN_KEY, showOneKey } from './key';

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: KEY_CHANGE_FIELDS,
} as const;

export function changeKeyRoute(stores: Stores): Route {
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);
  return {
    listener: 'public',
    auth: 'session',
    method: 'PATCH',
    path: '/console/api/keys/{keyId}',
    summary: 'Changes name, limits, models, expiry or addresses of a key; null removes.',
    body: KEY_CHANGES,
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, params, session }, request, response) => {
      const { name, allowedModels, expiresAt, allowedAddresses, ...limits } = await readChanges(request);
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const access = readAccess({ expiresAt, allowedAddresses });
      const changes = { name, allowedModels, ...access, ...readLimits(limits) };
      const changed = await updateKey(stores, id, changes, actorOf(session));
      sendJson(response, 200, await showOneKey(stores.database, changed));
    },
  };
}
