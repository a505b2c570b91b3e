import type { Knex } from 'knex';
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
import { sessionRoute } from '../../../core/api/json-routes';
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
import { PAGE_READERS, pageOf, readText, wordReader } from '../../../core/http/query';
import { object, orNull, pageShape, shape } from '../../../core/http/shape';
import { EVERYONE, KEY_HOLDERS } from '../../../core/sign-in/member-roles';
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

const NEW_KEY = {
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: NEW_KEY_FIELDS,
} as const;

const KEY_CHANGES = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: KEY_CHANGE_FIELDS,
} as const;

const SHOWN_KEY = { 200: { description: 'The key.', schema: object(OWN_KEY) } };
const MADE = { 201: { description: 'The key with its secret.', schema: object({ ...OWN_KEY, key: shape.text }) } };

export function consoleKeyRoutes(
  gateway: Pick<PluginGateway, 'calls' | 'database' | 'ledger' | 'keys'>,
): readonly Route[] {
  const { database } = gateway;
  const showMade = async ({ key, apiKey }: Awaited<ReturnType<typeof createKey>>) => {
    gateway.keys.made(apiKey);
    return { ...(await showOneKey(database, key)), key: apiKey };
  };
  return [
    sessionRoute('GET /console/api/keys', {
      roles: EVERYONE,
      summary: 'The keys of the account, newest first; a member sees its own.',
      query: { ...PAGE_READERS, search: readText, status: wordReader(['active', 'revoked'] as const) },
      answers: { 200: { description: 'A page of keys.', schema: pageShape(object(OWN_KEY)) } },
      handle: async ({ accountId, memberId, filters: { search, status, ...page } }) => {
        const { items, nextCursor } = await listKeys(gateway, accountId, pageOf(page), { search, status, memberId });
        return { items: await showKeys(database, items), nextCursor };
      },
    }),
    sessionRoute('GET /console/api/keys/{keyId}', {
      roles: EVERYONE,
      summary: 'One key.',
      answers: SHOWN_KEY,
      handle: async ({ accountId, memberId, params }) =>
        showOneKey(database, await findKey(gateway, accountId, params.keyId, memberId)),
    }),
    sessionRoute('POST /console/api/keys', {
      roles: KEY_HOLDERS,
      summary: 'Creates a key; only this answer contains it. A member makes keys of itself, in one of its teams.',
      body: NEW_KEY,
      answers: MADE,
      errors: ['NOT_FOUND', 'RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ accountId, memberId: ownId, session, body }) => {
        const wanted = readKeySettings(body);
        return showMade(await createKey(gateway, accountId, wanted, actorOf(session), ownId));
      },
    }),
    sessionRoute('PATCH /console/api/keys/{keyId}', {
      roles: KEY_HOLDERS,
      summary:
        'Changes name, limits, models, team, member, required tags, demands, expiry or addresses of a key; null removes.',
      body: KEY_CHANGES,
      answers: SHOWN_KEY,
      errors: ['CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ accountId, memberId: ownId, params, session, body }) => {
        const { id } = await findKey(gateway, accountId, params.keyId, ownId);
        const changes = readKeySettings(body);
        return showOneKey(database, await updateKey(gateway, id, changes, actorOf(session), ownId));
      },
    }),
    sessionRoute('POST /console/api/keys/{keyId}/rotate', {
      roles: KEY_HOLDERS,
      summary:
        'Gives a key a new secret, which only this answer contains; the previous one works until the grace ends.',
      body: ROTATION,
      answers: MADE,
      errors: ['RATE_LIMITED', 'CONFLICT', 'LEDGER_UNAVAILABLE'],
      handle: async ({ accountId, memberId, params, session, body: { graceSeconds } }) => {
        const { id } = await findKey(gateway, accountId, params.keyId, memberId);
        return showMade(await rotateKey(gateway, id, graceSeconds, actorOf(session)));
      },
    }),
    sessionRoute('DELETE /console/api/keys/{keyId}', {
      roles: KEY_HOLDERS,
      summary: 'Revokes a key; answers when no node accepts it any more.',
      answers: SHOWN_KEY,
      errors: ['LEDGER_UNAVAILABLE'],
      handle: async ({ accountId, memberId, params, session }) => {
        const { id } = await findKey(gateway, accountId, params.keyId, memberId);
        return showOneKey(database, await revokeKey(gateway, id, actorOf(session)));
      },
    }),
  ];
}
