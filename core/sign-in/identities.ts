import type { Knex } from 'knex';
import { limitKeysOf } from '../accounts/keys';
import { writeAudit } from '../storage/audit';
import { canonicalEmail, endSignIns, lockUser, toUser, type User, type UserRow } from './users';

/** How an identity provider names a person. An e-mail address may later belong to another person; a subject never does. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

/** Why an identity cannot sign in. `bound` means that the user of its address is bound to another identity. */
export type IdentityRefusal = 'unverified' | 'unknown' | 'bound';

/**
 * Returns the user that an identity is bound to. Binds a new identity to the user with its verified e-mail address. From then on the
 * gateway ignores the identity's address. If an invitation made the user, its password and its sessions end, because the one who opened the
 * link may be another person than the one with the address.
 */
export async function recogniseIdentity(
  database: Knex,
  { issuer, subject }: Identity,
  verifiedEmail: string | undefined,
): Promise<User | { readonly refused: IdentityRefusal; readonly userId?: string }> {
  const identity = { identity_issuer: issuer, identity_subject: subject };
  const own = await database<UserRow>('users').where(identity).first();
  if (own !== undefined) return own.status === 'active' ? toUser(own as UserRow) : { refused: 'unknown' };
  if (verifiedEmail === undefined) return { refused: 'unverified' };
  return database.transaction(async (transaction) => {
    const row: UserRow | undefined = await transaction<UserRow>('users')
      .where({ email: canonicalEmail(verifiedEmail), status: 'active' })
      .forUpdate()
      .first();
    if (row === undefined) return { refused: 'unknown' };
    if (row.identity_subject !== null) {
      // A concurrent sign-in may have bound the user to the same identity.
      const isOwn = row.identity_issuer === issuer && row.identity_subject === subject;
      return isOwn ? toUser(row) : { refused: 'bound', userId: row.id };
    }
    const bound = { ...identity, identity_bound_at: new Date(), is_invited: false };
    await transaction('users')
      .where({ id: row.id })
      .update({ ...bound, ...(row.is_invited && { password_hash: '' }) });
    if (row.is_invited) await endSignIns(transaction, row.id);
    const user = `user:${row.id}`;
    await writeAudit(transaction, { actor: user, action: 'user.bind', subject: user, after: { issuer, subject } });
    return toUser({ ...row, ...bound });
  });
}

/**
 * Unbinds a user from its identity, and ends its sessions and links. The next identity with the user's verified address is then
 * bound. No provider limits the user's keys any more; the caller sends them with `pushKeysOf`. Changes nothing for a user that is not bound.
 * @throws NOT_FOUND
 */
export async function unbindIdentity(database: Knex, userId: string, actor: string): Promise<User> {
  return database.transaction(async (transaction) => {
    const row = await lockUser(transaction, userId);
    const { identity } = toUser(row);
    if (identity === null) return toUser(row);
    const unbound = {
      identity_issuer: null,
      identity_subject: null,
      identity_bound_at: null,
      confirmed_until: null,
    };
    await transaction('users').where({ id: userId }).update(unbound);
    await limitKeysOf(transaction, userId, null);
    await endSignIns(transaction, userId);
    const { issuer, subject } = identity;
    const before = { issuer, subject };
    await writeAudit(transaction, { actor, action: 'user.unbind', subject: `user:${userId}`, before });
    return toUser({ ...row, ...unbound });
  });
}
