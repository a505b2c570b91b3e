import type { Knex } from 'knex';
import { type AccountKey, readLastUses } from '../../../core/accounts/keys';
import { KEY, showKey } from '../../../core/api/key-fields';
import { orNull, shape } from '../../../core/http/shape';
import type { Session } from '../../../core/sign-in/sessions';

/** Shows keys to a person of their account, with when each was last used. Another account's are not there. */
export async function showKeys(database: Knex, keys: readonly AccountKey[]) {
  const lastUses = await readLastUses(
    database,
    keys.map(({ id }) => id),
  );
  return keys.map((key) => {
    const { accountId: _account, debug: _debug, ...shown } = showKey(key);
    return { ...shown, lastUsedAt: lastUses.get(key.id)?.toISOString() ?? null };
  });
}

export async function showOneKey(database: Knex, key: AccountKey) {
  return (await showKeys(database, [key]))[0];
}

const { accountId: _account, debug: _debug, ...SHOWN } = KEY;

/** The members of what `showOneKey` answers. */
export const OWN_KEY = { ...SHOWN, lastUsedAt: orNull(shape.time) };

/** The actor of what a person changes, for the audit log. */
export function actorOf({ user }: Session): string {
  return `user:${user.id}`;
}
