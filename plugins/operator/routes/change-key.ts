import type { Stores } from '../../../core/accounts/accounts';
import { updateKey } from '../../../core/accounts/keys';
import { KEY, KEY_CHANGE_FIELDS, readLimits, showKey } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { ADMIN } from '../../../core/storage/audit';
import { DEBUG } from './key-fields';

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { ...KEY_CHANGE_FIELDS, debug: DEBUG },
  example: { balanceLimit: '20.00', callsPerMinute: 60 },
} as const;

export function changeKeyRoute(stores: Stores): Route {
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);
  return {
    listener: 'admin',
    method: 'PATCH',
    path: '/admin/v1/keys/{keyId}',
    summary: 'Change name, limits or models of a key; null removes a limit.',
    body: KEY_CHANGES,
    answers: { 200: { description: 'The key.', schema: object(KEY) } },
    errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params }, request, response) => {
      const { name, allowedModels, debug, ...limits } = await readChanges(request);
      const changes = { name, allowedModels, debug, ...readLimits(limits) };
      sendJson(response, 200, showKey(await updateKey(stores, params['keyId'] ?? '', changes, ADMIN)));
    },
  };
}
