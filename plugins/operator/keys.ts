import { type AccountKey, createKey, listKeys, revokeKey, updateKey } from '../../core/account-keys';
import type { Stores } from '../../core/accounts';
import { jsonBody, sendJson } from '../../core/http';
import { showLimits } from '../../core/key-limit-columns';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { object, oneOf, orNull, pageOf as pageShape, shape } from '../../core/shape';
import { ADMIN, ALLOWED_MODELS, AMOUNT, readAmount, showUsd, TEXT } from './fields';

/** Whether the key may see how its calls are routed: `x-tollgate-debug`. */
const DEBUG = { type: 'boolean' } as const;

/** So many at once, and then one after the other as the minute goes by. */
const BY_THE_MINUTE = { type: 'integer', minimum: 1, maximum: 1_000_000_000 } as const;

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: {
    name: TEXT,
    balanceLimit: AMOUNT,
    dailyLimit: AMOUNT,
    monthlyLimit: AMOUNT,
    callsPerMinute: BY_THE_MINUTE,
    tokensPerMinute: BY_THE_MINUTE,
    allowedModels: ALLOWED_MODELS,
    debug: DEBUG,
  },
} as const;

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    name: TEXT,
    balanceLimit: { ...AMOUNT, type: ['string', 'null'] },
    dailyLimit: { ...AMOUNT, type: ['string', 'null'] },
    monthlyLimit: { ...AMOUNT, type: ['string', 'null'] },
    callsPerMinute: { ...BY_THE_MINUTE, type: ['integer', 'null'] },
    tokensPerMinute: { ...BY_THE_MINUTE, type: ['integer', 'null'] },
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
      body: NEW_KEY,
      answers: { 201: { description: 'The key with its secret.', schema: object({ ...KEY, key: shape.text }) } },
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ params }, request, response) => {
        const { name, allowedModels, debug, ...limits } = await readNewKey(request);
        const wanted = { name, allowedModels, debug, ...readLimits(limits) };
        const made = await createKey(stores, params['accountId'] ?? '', wanted, ADMIN);
        sendJson(response, 201, { ...toJson(made.key), key: made.apiKey }, { 'cache-control': 'no-store' });
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
        sendJson(response, 200, { items: items.map(toJson), nextCursor });
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
        sendJson(response, 200, toJson(await updateKey(stores, params['keyId'] ?? '', changes, ADMIN)));
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
        sendJson(response, 200, toJson(await revokeKey(stores, params['keyId'] ?? '', ADMIN)));
      },
    },
  ];
}

interface LimitFields {
  readonly balanceLimit?: string | null;
  readonly dailyLimit?: string | null;
  readonly monthlyLimit?: string | null;
  readonly callsPerMinute?: number | null;
  readonly tokensPerMinute?: number | null;
}

function readLimits({ balanceLimit, dailyLimit, monthlyLimit, callsPerMinute, tokensPerMinute }: LimitFields) {
  const amount = (field: string, text: string | null | undefined) =>
    typeof text === 'string' ? readAmount(field, text) : text;
  return {
    limitE8: amount('balanceLimit', balanceLimit),
    dailyLimitE8: amount('dailyLimit', dailyLimit),
    monthlyLimitE8: amount('monthlyLimit', monthlyLimit),
    callsPerMinute,
    tokensPerMinute,
  };
}

function toJson(key: AccountKey): object {
  return {
    id: key.id,
    accountId: key.accountId,
    name: key.name,
    prefix: key.prefix,
    suffix: key.suffix,
    status: key.status,
    ...showLimits(key.limits),
    spentUsd: showUsd(key.money?.spentE8),
    heldUsd: showUsd(key.money?.heldE8),
    allowedModels: key.allowedModels ?? null,
    debug: key.debug,
    createdAt: key.createdAt.toISOString(),
    revokedAt: key.revokedAt?.toISOString() ?? null,
  };
}

const KEY = {
  id: shape.uuid,
  accountId: shape.uuid,
  name: shape.text,
  prefix: shape.text,
  suffix: shape.text,
  status: oneOf('active', 'revoked'),
  balanceLimit: orNull(shape.usd),
  dailyLimit: orNull(shape.usd),
  monthlyLimit: orNull(shape.usd),
  callsPerMinute: orNull(shape.integer),
  tokensPerMinute: orNull(shape.integer),
  spentUsd: orNull(shape.usd),
  heldUsd: orNull(shape.usd),
  allowedModels: orNull(shape.texts),
  debug: shape.yes,
  createdAt: shape.time,
  revokedAt: orNull(shape.time),
};
