import { naming, type Stores } from '../accounts/accounts';
import { pushKeysOf, revokeKeysOf } from '../accounts/keys';
import { writeAudit } from '../storage/audit';
import { type Changer, requireOwnerFor } from './member-roles';
import { assertOwnerLeft, endInvitations, endSignIns, lockMember, toUser, type User } from './users';

/**
 * Removes a user: ends sessions, links and invitations, takes the user out of its teams, and revokes its API keys. The row stays, because
 * keys, usage records and spending name it; its address and its identity are free for another user. The promise resolves when no node accepts
 * the keys. If the ledger is unreachable, LEDGER_UNAVAILABLE names the user, and a repetition or the sweeper finishes the removal.
 * @throws NOT_FOUND, LEDGER_UNAVAILABLE; CONFLICT for the last owner; FORBIDDEN if only an owner may do it
 */
export async function removeUser(stores: Stores, userId: string, { actor, ...by }: Changer): Promise<User> {
  const user = await stores.database.transaction(async (transaction) => {
    const before = await lockMember(transaction, userId);
    requireOwnerFor(by, before.role);
    if (before.status === 'removed') return before;
    await assertOwnerLeft(transaction, before);
    const freed = { identity_issuer: null, identity_subject: null, identity_bound_at: null, confirmed_until: null };
    const removed = { status: 'removed', password_hash: '', ...freed } as const;
    await transaction('users').where({ id: userId }).update(removed);
    await endSignIns(transaction, userId);
    await endInvitations(transaction, userId);
    await transaction('team_members').where({ user_id: userId }).delete();
    const { account_id: accountId, email, role, status } = before;
    const audited = { before: { accountId, email, role, status }, after: { status: removed.status } };
    await revokeKeysOf(transaction, userId, actor);
    await writeAudit(transaction, { actor, action: 'user.remove', subject: `user:${userId}`, ...audited });
    return { ...before, ...removed };
  });
  await naming({ userId }, () => pushKeysOf(stores, userId));
  return toUser(user);
}
