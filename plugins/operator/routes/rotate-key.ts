import type { Stores } from '../../../core/accounts/accounts';
import { rotateKey } from '../../../core/accounts/keys';
import { ROTATION } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { OPERATOR_KEY_FIELDS, showOperatorKey } from './key-fields';

export function rotateKeyRoute(stores: Stores & Pick<PluginGateway, 'keys'>): Route {
  const readRotation = jsonBody<Settings<typeof ROTATION>>(ROTATION);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/keys/{keyId}/rotate',
    summary: 'Give a key a new secret, which only this answer contains; the previous one works until the grace ends.',
    body: ROTATION,
    answers: {
      201: { description: 'The key with its secret.', schema: object({ ...OPERATOR_KEY_FIELDS, key: shape.text }) },
    },
    errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, request, response) => {
      const { graceSeconds } = await readRotation(request);
      const made = await rotateKey(stores, params['keyId'] ?? '', graceSeconds, operator.actor);
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...showOperatorKey(made.key), key: made.apiKey }, { 'cache-control': 'no-store' });
    },
  };
}
