import { type AccountKey, createKey, listKeys, revokeKey, rotateKey, updateKey } from '../../../core/accounts/keys';
import { adminRoute } from '../../../core/api/json-routes';
import {
  KEY,
  KEY_CHANGE_FIELDS,
  NEW_KEY_FIELDS,
  ROTATION,
  readKeySettings,
  showKey,
} from '../../../core/api/key-fields';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { PAGE_READERS, pageOf, wordReader } from '../../../core/http/query';
import { object, pageShape, shape } from '../../../core/http/shape';
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

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { ...NEW_KEY_FIELDS, markup: NEW_MARKUP, debug: DEBUG },
  example: { name: 'web', balanceLimit: '10.00' },
} as const;

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: { ...KEY_CHANGE_FIELDS, markup: MARKUP_CHANGE, debug: DEBUG },
  example: { balanceLimit: '20.00', callsPerMinute: 60 },
} as const;

const SHOWN = { 200: { description: 'The key.', schema: OPERATOR_KEY } };
const MADE = {
  201: { description: 'The key with its secret.', schema: object({ ...OPERATOR_KEY_FIELDS, key: shape.text }) },
};

export function operatorKeyRoutes(gateway: PluginGateway): readonly Route[] {
  const showMade = ({ key, apiKey }: Awaited<ReturnType<typeof createKey>>) => {
    gateway.keys.made(apiKey);
    return { ...showOperatorKey(key), key: apiKey };
  };
  return [
    adminRoute('POST /admin/v1/accounts/{accountId}/keys', {
      role: 'write',
      summary: 'Create an API key; only this answer contains it.',
      body: NEW_KEY,
      answers: MADE,
      errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) => {
        checkMarkup(gateway.catalog, body.markup);
        const wanted = readKeySettings(body);
        return showMade(await createKey(gateway, params.accountId, wanted, operator.actor));
      },
    }),
    adminRoute('GET /admin/v1/accounts/{accountId}/keys', {
      role: 'read',
      summary: 'List the keys of an account, newest first.',
      query: { ...PAGE_READERS, status: wordReader(['active', 'revoked'] as const) },
      answers: { 200: { description: 'A page of keys.', schema: pageShape(OPERATOR_KEY) } },
      handle: async ({ params, filters: { status, ...page } }) => {
        const { items, nextCursor } = await listKeys(gateway, params.accountId, pageOf(page), { status });
        return { items: items.map(showOperatorKey), nextCursor };
      },
    }),
    adminRoute('PATCH /admin/v1/keys/{keyId}', {
      role: 'write',
      summary:
        'Change name, limits, models, markup, team, member, required tags, demands, expiry or addresses of a key; null removes.',
      body: KEY_CHANGES,
      answers: SHOWN,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) => {
        checkMarkup(gateway.catalog, body.markup);
        const changes = readKeySettings(body);
        return showOperatorKey(await updateKey(gateway, params.keyId, changes, operator.actor));
      },
    }),
    adminRoute('POST /admin/v1/keys/{keyId}/rotate', {
      role: 'write',
      summary: 'Give a key a new secret, which only this answer contains; the previous one works until the grace ends.',
      body: ROTATION,
      answers: MADE,
      errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ body, params, operator }) =>
        showMade(await rotateKey(gateway, params.keyId, body.graceSeconds, operator.actor)),
    }),
    adminRoute('DELETE /admin/v1/keys/{keyId}', {
      role: 'write',
      summary: 'Revoke a key; answers when no node accepts it any more.',
      answers: SHOWN,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params, operator }) => showOperatorKey(await revokeKey(gateway, params.keyId, operator.actor)),
    }),
  ];
}
