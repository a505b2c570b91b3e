import type { Stores } from '../../../core/accounts/accounts';
import { findKey, updateKey } from '../../../core/accounts/keys';
import { KEY_CHANGE_FIELDS, readLimits } from '../../../core/api/key-fields';
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
    summary: 'Changes name, limits or models of a key; null removes a limit.',
    body: KEY_CHANGES,
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, params, session }, request, response) => {
      const { name, allowedModels, ...limits } = await readChanges(request);
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const changes = { name, allowedModels, ...readLimits(limits) };
      const changed = await updateKey(stores, id, changes, actorOf(session));
      sendJson(response, 200, await showOneKey(stores.database, changed));
    },
  };
}
