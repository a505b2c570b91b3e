import { createKey, listKeys, revokeKey, updateKey } from '../../core/account-keys';
import type { Stores } from '../../core/accounts';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import { KEY, KEY_CHANGE_FIELDS, NEW_KEY_FIELDS, readLimits, showKey } from '../../core/key-fields';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { object, pageOf as pageShape, shape } from '../../core/shape';
import { ADMIN } from './fields';

/** Whether the key may see how its calls are routed: `x-tollgate-debug`. */
const DEBUG = { type: 'boolean' } as const;

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { ...NEW_KEY_FIELDS, debug: DEBUG },
  example: { name: 'web', balanceLimit: '10.00' },
} as const;

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { ...KEY_CHANGE_FIELDS, debug: DEBUG },
  example: { balanceLimit: '20.00', callsPerMinute: 60 },
} as const;

export function keyRoutes(stores: Stores & Pick<Gateway, 'keys'>): Route[] {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);
  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/accounts/{accountId}/keys',
      summary: 'Create an API key; it is in this answer only.',
      body: NEW_KEY,
      answers: { 201: { description: 'The key with its secret.', schema: object({ ...KEY, key: shape.text }) } },
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params }, request, response) => {
        const { name, allowedModels, debug, ...limits } = await readNewKey(request);
        const wanted = { name, allowedModels, debug, ...readLimits(limits) };
        const made = await createKey(stores, params['accountId'] ?? '', wanted, ADMIN);
        stores.keys.made(made.apiKey);
        sendJson(response, 201, { ...showKey(made.key), key: made.apiKey }, { 'cache-control': 'no-store' });
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/accounts/{accountId}/keys',
      summary: 'List the keys of an account, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of keys.', schema: pageShape(object(KEY)) } },
      handle: async ({ params, query }, _request, response) => {
        const page = pageOf(readQuery(query, PAGE_READERS));
        const { items, nextCursor } = await listKeys(stores, params['accountId'] ?? '', page);
        sendJson(response, 200, { items: items.map(showKey), nextCursor });
      },
    },
    {
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
    },
    {
      listener: 'admin',
      method: 'DELETE',
      path: '/admin/v1/keys/{keyId}',
      summary: 'Revoke a key; answered when no node admits it any more.',
      answers: { 200: { description: 'The key.', schema: object(KEY) } },
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params }, _request, response) => {
        sendJson(response, 200, showKey(await revokeKey(stores, params['keyId'] ?? '', ADMIN)));
      },
    },
  ];
}
