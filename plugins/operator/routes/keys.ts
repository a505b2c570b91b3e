import type { Stores } from '../../../core/accounts/accounts';
import { type AccountKey, createKey, listKeys, revokeKey, rotateKey, updateKey } from '../../../core/accounts/keys';
import {
  KEY,
  KEY_CHANGE_FIELDS,
  NEW_KEY_FIELDS,
  ROTATION,
  readAccess,
  readLimits,
  showKey,
} from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, pageOf as pageShape, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { checkMarkup, MARKUP, MARKUP_CHANGE, NEW_MARKUP } from './accounts';

/** Whether the key's calls may ask how they are routed (`x-tollgate-debug`). Only operators set it. */
const DEBUG = { type: 'boolean' } as const;

/** Shows a key to operators, with the fields that only they see. */
function showOperatorKey(key: AccountKey) {
  return { ...showKey(key), markup: key.markup ?? null };
}

/** The members of the result of `showOperatorKey`. */
const OPERATOR_KEY_FIELDS = { ...KEY, markup: MARKUP };

const OPERATOR_KEY = object(OPERATOR_KEY_FIELDS);

export function listKeysRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/accounts/{accountId}/keys',
    summary: 'List the keys of an account, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of keys.', schema: pageShape(OPERATOR_KEY) } },
    handle: async ({ params, query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listKeys(stores, params['accountId'] ?? '', page);
      sendJson(response, 200, { items: items.map(showOperatorKey), nextCursor });
    },
  };
}

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

export function revokeKeyRoute(stores: Stores): Route {
  return {
    listener: 'admin',
    role: 'write',
    method: 'DELETE',
    path: '/admin/v1/keys/{keyId}',
    summary: 'Revoke a key; answers when no node accepts it any more.',
    answers: { 200: { description: 'The key.', schema: OPERATOR_KEY } },
    errors: ['LEDGER_UNAVAILABLE'],
    handle: async ({ params, operator }, _request, response) => {
      sendJson(response, 200, showOperatorKey(await revokeKey(stores, params['keyId'] ?? '', operator.actor)));
    },
  };
}
