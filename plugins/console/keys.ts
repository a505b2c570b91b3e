import {
  type AccountKey,
  createKey,
  findKey,
  listKeys,
  readLastUses,
  revokeKey,
  updateKey,
} from '../../core/account-keys';
import type { Stores } from '../../core/accounts';
import { sessionRoute } from '../../core/console-route';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import { KEY_CHANGE_FIELDS, NEW_KEY_FIELDS, readLimits, showKey } from '../../core/key-fields';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, readText, wordReader } from '../../core/query';
import type { Session } from '../../core/sessions';
import type { Settings } from '../../core/settings';

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

const READERS = { ...PAGE_READERS, search: readText, status: wordReader(['active', 'revoked']) };

/** The keys of the account of whoever is signed in. Another account's are not there. */
export function keyRoutes(stores: Stores & Pick<Gateway, 'keys'>): Route[] {
  const readNewKey = jsonBody<Settings<typeof NEW_KEY>>(NEW_KEY);
  const readChanges = jsonBody<Settings<typeof KEY_CHANGES>>(KEY_CHANGES);

  const show = async (keys: readonly AccountKey[]) => {
    const lastUses = await readLastUses(
      stores.database,
      keys.map(({ id }) => id),
    );
    return keys.map((key) => {
      const { accountId: _account, debug: _debug, ...shown } = showKey(key);
      return { ...shown, lastUsedAt: lastUses.get(key.id)?.toISOString() ?? null };
    });
  };
  const showOne = async (key: AccountKey) => (await show([key]))[0];

  return [
    sessionRoute('GET', '/keys', async ({ accountId, query }, _request, response) => {
      const { search, status, ...page } = readQuery(query, READERS);
      const { items, nextCursor } = await listKeys(stores, accountId, pageOf(page), { search, status });
      sendJson(response, 200, { items: await show(items), nextCursor });
    }),
    sessionRoute('GET', '/keys/{keyId}', async ({ accountId, params }, _request, response) => {
      sendJson(response, 200, await showOne(await findKey(stores, accountId, params['keyId'] ?? '')));
    }),
    sessionRoute('POST', '/keys', async ({ accountId, session }, request, response) => {
      const { name, allowedModels, ...limits } = await readNewKey(request);
      const wanted = { name, allowedModels, ...readLimits(limits) };
      const made = await createKey(stores, accountId, wanted, actorOf(session));
      stores.keys.made(made.apiKey);
      sendJson(response, 201, { ...(await showOne(made.key)), key: made.apiKey });
    }),
    sessionRoute('PATCH', '/keys/{keyId}', async ({ accountId, params, session }, request, response) => {
      const { name, allowedModels, ...limits } = await readChanges(request);
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      const changes = { name, allowedModels, ...readLimits(limits) };
      sendJson(response, 200, await showOne(await updateKey(stores, id, changes, actorOf(session))));
    }),
    sessionRoute('DELETE', '/keys/{keyId}', async ({ accountId, params, session }, _request, response) => {
      const { id } = await findKey(stores, accountId, params['keyId'] ?? '');
      sendJson(response, 200, await showOne(await revokeKey(stores, id, actorOf(session))));
    }),
  ];
}

/** Who is written into the audit log. */
function actorOf({ user }: Session): string {
  return `user:${user.id}`;
}
