import { type AccountKey, createKey, listKeys, revokeKey, updateKey } from '../../core/account-keys';
import type { Stores } from '../../core/accounts';
import { jsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { ADMIN, ALLOWED_MODELS, AMOUNT, readAmount, showUsd, TEXT } from './fields';

/** Whether the key may see how its calls are routed: `x-tollgate-debug`. */
const DEBUG = { type: 'boolean' } as const;

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: { name: TEXT, balanceLimit: AMOUNT, allowedModels: ALLOWED_MODELS, debug: DEBUG },
} as const;

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    name: TEXT,
    balanceLimit: { ...AMOUNT, type: ['string', 'null'] },
    allowedModels: { ...ALLOWED_MODELS, type: ['array', 'null'] },
    debug: DEBUG,
  },
} as const;

export function keyRoutes(stores: Stores): Route[] {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);
  return [
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/accounts/{accountId}/keys',
      summary: 'Create an API key; it is in this answer only.',
      handle: async ({ params }, request, response) => {
        const { name, balanceLimit, allowedModels, debug } = await readNewKey(request);
        const limitE8 = balanceLimit === undefined ? undefined : readAmount('balanceLimit', balanceLimit);
        const made = await createKey(stores, params['accountId'] ?? '', { name, limitE8, allowedModels, debug }, ADMIN);
        sendJson(response, 201, { ...toJson(made.key), key: made.apiKey }, { 'cache-control': 'no-store' });
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/accounts/{accountId}/keys',
      summary: 'List the keys of an account, newest first.',
      handle: async ({ params, query }, _request, response) => {
        const page = pageOf(readQuery(query, PAGE_READERS));
        const { items, nextCursor } = await listKeys(stores, params['accountId'] ?? '', page);
        sendJson(response, 200, { items: items.map(toJson), nextCursor });
      },
    },
    {
      listener: 'admin',
      method: 'PATCH',
      path: '/admin/v1/keys/{keyId}',
      summary: 'Change name, limit or models of a key; null removes a limit.',
      handle: async ({ params }, request, response) => {
        const { name, balanceLimit, allowedModels, debug } = await readChanges(request);
        const limitE8 = typeof balanceLimit === 'string' ? readAmount('balanceLimit', balanceLimit) : balanceLimit;
        const changes = { name, limitE8, allowedModels, debug };
        sendJson(response, 200, toJson(await updateKey(stores, params['keyId'] ?? '', changes, ADMIN)));
      },
    },
    {
      listener: 'admin',
      method: 'DELETE',
      path: '/admin/v1/keys/{keyId}',
      summary: 'Revoke a key; answered when no node admits it any more.',
      handle: async ({ params }, _request, response) => {
        sendJson(response, 200, toJson(await revokeKey(stores, params['keyId'] ?? '', ADMIN)));
      },
    },
  ];
}

function toJson(key: AccountKey): object {
  return {
    id: key.id,
    accountId: key.accountId,
    name: key.name,
    prefix: key.prefix,
    suffix: key.suffix,
    status: key.status,
    balanceLimit: showUsd(key.limitE8),
    spentUsd: showUsd(key.money?.spentE8),
    heldUsd: showUsd(key.money?.heldE8),
    allowedModels: key.allowedModels ?? null,
    debug: key.debug,
    createdAt: key.createdAt.toISOString(),
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}
