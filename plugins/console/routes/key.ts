import type { Knex } from 'knex';
import { type AccountKey, readLastUses } from '../../../core/accounts/keys';
import { KEY, showKey } from '../../../core/api/key-fields';
import { orNull, shape } from '../../../core/http/shape';
import type { Session } from '../../../core/sign-in/sessions';

/** Shows an account's keys to its user, each with the time of its last use. */
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

/** The members of the result of `showOneKey`. */
export const OWN_KEY = { ...SHOWN, lastUsedAt: orNull(shape.time) };

/** Returns the actor of a user's changes, for the audit log. */
export function actorOf({ user }: Session): string {
  return `user:${user.id}`;
}
