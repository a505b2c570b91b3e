import type { Knex } from 'knex';
import type { Stores } from '../../../core/accounts/accounts';
import {
  type AccountKey,
  createKey,
  findKey,
  listKeys,
  readLastUses,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../../core/accounts/keys';
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
import { PAGE_READERS, pageOf, readQuery, readText, wordReader } from '../../../core/http/query';
import { object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import type { Session } from '../../../core/sign-in/sessions';

/** Shows an account's keys to its user, each with the time of its last use. */
async function showKeys(database: Knex, keys: readonly AccountKey[]) {
  const lastUses = await readLastUses(
    database,
    keys.map(({ id }) => id),
  );
  return keys.map((key) => {
    const { accountId: _account, debug: _debug, ...shown } = showKey(key);
    return { ...shown, lastUsedAt: lastUses.get(key.id)?.toISOString() ?? null };
  });
}

async function showOneKey(database: Knex, key: AccountKey) {
  return (await showKeys(database, [key]))[0];
}

const { accountId: _account, debug: _debug, ...SHOWN } = KEY;

/** The members of the result of `showOneKey`. */
const OWN_KEY = { ...SHOWN, lastUsedAt: orNull(shape.time) };

/** Returns the actor of a user's changes, for the audit log. */
function actorOf({ user }: Session): string {
  return `user:${user.id}`;
}

const READERS = { ...PAGE_READERS, search: readText, status: wordReader(['active', 'revoked']) };

export function listKeysRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/keys',
    summary: 'The keys of the account, newest first.',
    query: READERS,
    answers: { 200: { description: 'A page of keys.', schema: pageShape(object(OWN_KEY)) } },
    handle: async ({ accountId, query }, _request, response) => {
      const { search, status, ...page } = readQuery(query, READERS);
      const { items, nextCursor } = await listKeys(stores, accountId, pageOf(page), { search, status });
      sendJson(response, 200, { items: await showKeys(stores.database, items), nextCursor });
    },
  };
}

export function showKeyRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/keys/{keyId}',
    summary: 'One key.',
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    handle: async ({ accountId, params }, _request, response) => {
      const key = await findKey(stores, accountId, params['keyId'] ?? '');
      sendJson(response, 200, await showOneKey(stores.database, key));
    },
  };
}

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: NEW_KEY_FIELDS,
} as const;

export function createKeyRoute(stores: Stores & Pick<PluginGateway, 'keys'>): Route {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  return {
    listener: 'public',
    auth: 'session',
    method: 'POST',
    path: '/console/api/keys',
    summary: 'Creates a key; only this answer contains it.',
    body: NEW_KEY,
    answers: { 201: { description: 'The key with its secret.', schema: object({ ...OWN_KEY, key: shape.text }) } },
    errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, session }, request, response) => {
      const { name, allowedModels, expiresAt, allowedAddresses, ...limits } = await readNewKey(request);
      const access = readAccess({ expiresAt, allowedAddresses });
      const wanted = { name, allowedModels, ...access, ...readLimits(limits) };
      const made = await createKey(stores, accountId, wanted, actorOf(session));
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...(await showOneKey(stores.database, made.key)), key: made.apiKey });
    },
  };
}

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

export function revokeKeyRoute(stores: Stores): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'DELETE',
    path: '/console/api/keys/{keyId}',
    summary: 'Revokes a key; answers when no node accepts it any more.',
    answers: { 200: { description: 'The key.', schema: object(OWN_KEY) } },
    errors: ['LEDGER_UNAVAILABLE'],
    handle: async ({ accountId, params, session }, _request, response) => {
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const revoked = await revokeKey(stores, id, actorOf(session));
      sendJson(response, 200, await showOneKey(stores.database, revoked));
    },
  };
}
