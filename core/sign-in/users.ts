import type { Knex } from 'knex';
import { lockAccount, requireAccount } from '../accounts/accounts';
import { fail, type GatewayError } from '../base/errors';
import { newId } from '../base/ids';
import { writeAudit } from '../storage/audit';
import { existing, idIs, missing, newestPage, type Page, type PageRequest } from '../storage/page';
import { type Changer, type MemberRole, requireOwnerFor } from './member-roles';
import { hashPassword, verifyPassword } from './password';

type UserStatus = 'active' | 'disabled' | 'removed';

/** A person who signs in to the console and sees one account. */
export interface User {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly status: UserStatus;
  readonly createdAt: Date;
  readonly passwordChangedAt: Date;
  /** How an identity provider names this user; null until the user first signs in with the provider. */
  readonly identity: { readonly issuer: string; readonly subject: string; readonly boundAt: Date } | null;
}

/** Changes of a user. An absent member leaves the stored value unchanged. */
interface UserChanges {
  readonly password?: string | undefined;
  readonly role?: MemberRole | undefined;
  readonly status?: Exclude<UserStatus, 'removed'> | undefined;
}

interface NewUser {
  readonly email: string;
  readonly password: string;
  readonly role?: MemberRole | undefined;
}

export interface UserRow {
  readonly id: string;
  readonly account_id: string;
  readonly email: string;
  readonly password_hash: string;
  readonly role: MemberRole;
  readonly status: UserStatus;
  readonly created_at: Date;
  readonly password_changed_at: Date;
  /** The three `identity_` members are either all null or all set. */
  readonly identity_issuer: string | null;
  readonly identity_subject: string | null;
  readonly identity_bound_at: Date | null;
  /** Until when the user's API keys in teams work without another sign-in with the provider; null for a user who is not bound. */
  readonly confirmed_until: Date | null;
  /** Whether an invitation made the user, and no identity provider has confirmed its address since. */
  readonly is_invited: boolean;
}

/** Creates a user. @throws NOT_FOUND if the account does not exist; CONFLICT if another user has this address */
export async function createUser(
  database: Knex,
  accountId: string,
  { email, password, role = 'owner' }: NewUser,
  actor: string,
): Promise<User> {
  await requireAccount(database, accountId);
  const made = { accountId, email, role, passwordHash: await hashPassword(password) };
  return database.transaction(async (transaction) => {
    const user = await insertUser(transaction, made);
    if (user === undefined) throw addressTaken();
    const after = { accountId, email: user.email, role, status: user.status };
    await writeAudit(transaction, { actor, action: 'user.create', subject: `user:${user.id}`, after });
    return user;
  });
}

/** Returns the error for an address that belongs to a user. */
export function addressTaken(): GatewayError {
  return fail('CONFLICT', { param: 'email', message: 'email: another user already has this address' });
}

/** Writes the row of a new user. Returns undefined if another user has this address. */
export async function insertUser(
  transaction: Knex.Transaction,
  wanted: {
    readonly accountId: string;
    readonly email: string;
    readonly role: MemberRole;
    readonly passwordHash: string;
    readonly isInvited?: boolean;
  },
): Promise<User | undefined> {
  const now = new Date();
  const row: UserRow = {
    id: newId(),
    account_id: wanted.accountId,
    email: canonicalEmail(wanted.email),
    password_hash: wanted.passwordHash,
    role: wanted.role,
    status: 'active',
    created_at: now,
    password_changed_at: now,
    identity_issuer: null,
    identity_subject: null,
    identity_bound_at: null,
    confirmed_until: null,
    is_invited: wanted.isInvited ?? false,
  };
  const written = await transaction('users')
    .insert(row)
    .onConflict(transaction.raw(`(email) WHERE status <> 'removed'`))
    .ignore()
    .returning('id');
  return written.length === 0 ? undefined : toUser(row);
}

/** Lists the users of an account, newest first; with `memberId` only this one. @throws NOT_FOUND if the account does not exist */
export async function listUsers(
  database: Knex,
  accountId: string,
  asked: PageRequest,
  memberId?: string,
): Promise<Page<User>> {
  await requireAccount(database, accountId);
  const query = database<UserRow>('users')
    .where({ account_id: accountId, ...(memberId !== undefined && { id: memberId }) })
    .whereNot({ status: 'removed' });
  return newestPage(query, asked, async (row: UserRow) => toUser(row));
}

/** Returns a user. @throws NOT_FOUND if the user does not exist or was removed */
export async function findUser(database: Knex, userId: string): Promise<User> {
  const query = database<UserRow>('users').where(idIs(userId)).whereNot({ status: 'removed' });
  return toUser(existing(await query.first(), 'user'));
}

/**
 * Changes a user's password, status or role. A new password or status ends the user's open sessions and deletes the user's sign-in links.
 * @throws NOT_FOUND; CONFLICT if the account would have no owner; FORBIDDEN if only an owner may do it
 */
export async function updateUser(
  database: Knex,
  userId: string,
  { password, status, role }: UserChanges,
  { actor, ...by }: Changer,
): Promise<User> {
  const renewed =
    password === undefined ? {} : { password_hash: await hashPassword(password), password_changed_at: new Date() };
  return database.transaction(async (transaction) => {
    const before = role === undefined ? await lockUser(transaction, userId) : await lockMember(transaction, userId);
    if (before.status === 'removed') throw missing('user');
    const changes = { ...renewed, status: status ?? before.status, role: role ?? before.role };
    const isOtherRole = changes.role !== before.role;
    if (isOtherRole) requireOwnerFor(by, before.role, changes.role);
    if (isOtherRole) await assertOwnerLeft(transaction, before);
    await transaction('users').where({ id: userId }).update(changes);
    if (password !== undefined || status !== undefined) await endSignIns(transaction, userId);
    if (isOtherRole || status === 'disabled') await endInvitations(transaction, userId);
    await writeAudit(transaction, {
      actor,
      action: 'user.update',
      subject: `user:${userId}`,
      before: { status: before.status, ...(isOtherRole && { role: before.role }) },
      after: {
        status: changes.status,
        ...(isOtherRole && { role: changes.role }),
        ...(password !== undefined && { passwordChanged: true }),
      },
    });
    return toUser({ ...before, ...changes });
  });
}

/** Reads a user that the caller is about to change, and locks the user's row. @throws NOT_FOUND if the user does not exist or was removed */
export async function lockUser(transaction: Knex.Transaction, userId: string): Promise<UserRow> {
  const row = await lockRow(transaction, userId);
  if (row.status === 'removed') throw missing('user');
  return row;
}

/**
 * Reads a user whose role or membership the caller is about to change, also a removed one. Locks the account first, so that two requests
 * cannot each take the other's owner away. @throws NOT_FOUND
 */
export async function lockMember(transaction: Knex.Transaction, userId: string): Promise<UserRow> {
  const query = transaction('users').where(idIs(userId));
  const user = existing(await query.first<Pick<UserRow, 'account_id'> | undefined>('account_id'), 'user');
  await lockAccount(transaction, user.account_id);
  return lockRow(transaction, userId);
}

async function lockRow(transaction: Knex.Transaction, userId: string): Promise<UserRow> {
  const query = transaction('users').where(idIs(userId));
  return existing(await query.forUpdate().first<UserRow | undefined>(), 'user');
}

/** Checks that an account keeps an active owner without this user. The caller has locked the account. @throws CONFLICT */
export async function assertOwnerLeft(
  transaction: Knex.Transaction,
  { id, account_id, role }: Pick<UserRow, 'id' | 'account_id' | 'role'>,
): Promise<void> {
  if (role !== 'owner') return;
  const other = await transaction('users')
    .where({ account_id, role: 'owner', status: 'active' })
    .whereNot({ id })
    .first('id');
  if (other !== undefined) return;
  const message = 'This is the last active owner of the account. Make another user an owner first.';
  throw fail('CONFLICT', { message });
}

/** Ends the invitations that a user has made, because they would give away a role that the user may no longer give. */
export async function endInvitations(transaction: Knex.Transaction, userId: string): Promise<void> {
  await transaction('invitations')
    .where({ invited_by: `user:${userId}` })
    .delete();
}

/** Ends a user's open sessions and deletes the user's sign-in links. */
export async function endSignIns(transaction: Knex.Transaction, userId: string): Promise<void> {
  for (const table of ['user_sessions', 'sign_in_links']) await transaction(table).where({ user_id: userId }).delete();
}

/** Returns the user with this address and password. Returns undefined for a wrong address, a wrong password or a disabled user, always after the same time. */
export async function findBySignIn(database: Knex, email: string, password: string): Promise<User | undefined> {
  const row = await database<UserRow>('users')
    .where({ email: canonicalEmail(email) })
    .whereNot({ status: 'removed' })
    .first();
  const isRight = await verifyPassword(password, row?.password_hash);
  return row !== undefined && isRight && row.status === 'active' ? toUser(row) : undefined;
}

/** Returns an e-mail address in its canonical form, however it is written. Replaces NUL, which Postgres rejects and no address contains. */
export function canonicalEmail(email: string): string {
  return email.replaceAll('\0', '\ufffd').normalize('NFC').toLowerCase();
}

export function toUser(row: UserRow): User {
  const { identity_issuer: issuer, identity_subject: subject, identity_bound_at: boundAt } = row;
  return {
    id: row.id,
    accountId: row.account_id,
    email: row.email,
    role: row.role,
    status: row.status,
    createdAt: row.created_at,
    passwordChangedAt: row.password_changed_at,
    identity: issuer === null || subject === null || boundAt === null ? null : { issuer, subject, boundAt },
  };
}
