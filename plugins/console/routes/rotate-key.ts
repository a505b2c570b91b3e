import type { Stores } from '../../../core/accounts/accounts';
import { findKey, rotateKey } from '../../../core/accounts/keys';
import { ROTATION } from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { actorOf, OWN_KEY, showOneKey } from './key';

export function rotateKeyRoute(stores: Stores & Pick<PluginGateway, 'keys'>): Route {
  const readRotation = jsonBody<Settings<typeof ROTATION>>(ROTATION);
  return {
    listener: 'public',
    auth: 'session',
    method: 'POST',
    path: '/console/api/keys/{keyId}/rotate',
    summary: 'Gives a key a new secret, which only this answer contains; the previous one works until the grace ends.',
    body: ROTATION,
    answers: { 201: { description: 'The key with its secret.', schema: object({ ...OWN_KEY, key: shape.text }) } },
    errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, params, session }, request, response) => {
      const { graceSeconds } = await readRotation(request);
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const made = await rotateKey(stores, id, graceSeconds, actorOf(session));
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...(await showOneKey(stores.database, made.key)), key: made.apiKey });
    },
  };
}
