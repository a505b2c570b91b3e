import type { Knex } from 'knex';
import { requireAccount } from '../accounts/accounts';
import { fail, type GatewayError } from '../base/errors';
import { newId } from '../base/ids';
import { writeAudit } from '../storage/audit';
import { decodeIdCursor, type Page, type PageRequest, toPage, UUID } from '../storage/page';
import { hashPassword, verifyPassword } from './password';

type UserStatus = 'active' | 'disabled';

/** A person who signs in to the console and sees one account. */
export interface User {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly status: UserStatus;
  readonly createdAt: Date;
  readonly passwordChangedAt: Date;
  /** How an identity provider names this user; null until the user first signs in with the provider. */
  readonly identity: { readonly issuer: string; readonly subject: string; readonly boundAt: Date } | null;
}

/** Changes of a user. An absent member leaves the stored value unchanged. */
interface UserChanges {
  readonly password?: string | undefined;
  readonly status?: UserStatus | undefined;
}

export interface UserRow {
  readonly id: string;
  readonly account_id: string;
  readonly email: string;
  readonly password_hash: string;
  readonly status: UserStatus;
  readonly created_at: Date;
  readonly password_changed_at: Date;
  /** The three `identity_` members are either all null or all set. */
  readonly identity_issuer: string | null;
  readonly identity_subject: string | null;
  readonly identity_bound_at: Date | null;
}

/** Creates a user. @throws NOT_FOUND if the account does not exist; CONFLICT if another user has this address */
export async function createUser(
  database: Knex,
  accountId: string,
  wanted: { readonly email: string; readonly password: string },
  actor: string,
): Promise<User> {
  await requireAccount(database, accountId);
  const now = new Date();
  const row: UserRow = {
    id: newId(),
    account_id: accountId,
    email: canonicalEmail(wanted.email),
    password_hash: await hashPassword(wanted.password),
    status: 'active',
    created_at: now,
    password_changed_at: now,
    identity_issuer: null,
    identity_subject: null,
    identity_bound_at: null,
  };
  await database.transaction(async (transaction) => {
    const written = await transaction('users').insert(row).onConflict('email').ignore().returning('id');
    if (written.length === 0)
      throw fail('CONFLICT', { param: 'email', message: 'email: another user already has this address' });
    const { email, status } = row;
    await writeAudit(transaction, {
      actor,
      action: 'user.create',
      subject: `user:${row.id}`,
      after: { accountId, email, status },
    });
  });
  return toUser(row);
}

/** Lists users, newest first. @throws NOT_FOUND if the account does not exist */
export async function listUsers(
  database: Knex,
  accountId: string,
  { limit, cursor }: PageRequest,
): Promise<Page<User>> {
  await requireAccount(database, accountId);
  const query = database<UserRow>('users')
    .where({ account_id: accountId })
    .orderBy('id', 'desc')
    .limit(limit + 1);
  const after = decodeIdCursor(cursor);
  const rows: UserRow[] = await (after === undefined ? query : query.where('id', '<', after));
  return toPage(rows, limit, (row) => [row.id], toUser);
}

/** Returns a user. @throws NOT_FOUND if the user does not exist */
export async function findUser(database: Knex, userId: string): Promise<User> {
  const row = UUID.test(userId) ? await database<UserRow>('users').where({ id: userId }).first() : undefined;
  if (row === undefined) throw noUser();
  return toUser(row);
}

/** Changes a user's password or status. Ends the user's open sessions and deletes the user's sign-in links. @throws NOT_FOUND */
export async function updateUser(
  database: Knex,
  userId: string,
  { password, status }: UserChanges,
  actor: string,
): Promise<User> {
  const renewed =
    password === undefined ? {} : { password_hash: await hashPassword(password), password_changed_at: new Date() };
  return database.transaction(async (transaction) => {
    const before = await lockUser(transaction, userId);
    const changes = { ...renewed, status: status ?? before.status };
    await transaction('users').where({ id: userId }).update(changes);
    await endSignIns(transaction, userId);
    await writeAudit(transaction, {
      actor,
      action: 'user.update',
      subject: `user:${userId}`,
      before: { status: before.status },
      after: { status: changes.status, ...(password === undefined ? {} : { passwordChanged: true }) },
    });
    return toUser({ ...before, ...changes });
  });
}

/** Reads a user that the caller is about to change, and locks the user's row. @throws NOT_FOUND */
export async function lockUser(transaction: Knex.Transaction, userId: string): Promise<UserRow> {
  const row = UUID.test(userId)
    ? await transaction<UserRow>('users').where({ id: userId }).forUpdate().first()
    : undefined;
  if (row === undefined) throw noUser();
  return row as UserRow;
}

/** Ends a user's open sessions and deletes the user's sign-in links. */
export async function endSignIns(transaction: Knex.Transaction, userId: string): Promise<void> {
  for (const table of ['user_sessions', 'sign_in_links']) await transaction(table).where({ user_id: userId }).delete();
}

/** Returns the user with this address and password. Returns undefined for a wrong address, a wrong password or a disabled user, always after the same time. */
export async function findBySignIn(database: Knex, email: string, password: string): Promise<User | undefined> {
  const row = await database<UserRow>('users')
    .where({ email: canonicalEmail(email) })
    .first();
  const isRight = await verifyPassword(password, row?.password_hash);
  return row !== undefined && isRight && row.status === 'active' ? toUser(row) : undefined;
}

/** Returns an e-mail address in its canonical form, however it is written. Replaces NUL, which Postgres rejects and no address contains. */
export function canonicalEmail(email: string): string {
  return email.replaceAll('\0', '\ufffd').normalize('NFC').toLowerCase();
}

function noUser(): GatewayError {
  return fail('NOT_FOUND', { message: 'The user does not exist.' });
}

export function toUser(row: UserRow): User {
  const { identity_issuer: issuer, identity_subject: subject, identity_bound_at: boundAt } = row;
  return {
    id: row.id,
    accountId: row.account_id,
    email: row.email,
    status: row.status,
    createdAt: row.created_at,
    passwordChangedAt: row.password_changed_at,
    identity: issuer === null || subject === null || boundAt === null ? null : { issuer, subject, boundAt },
  };
}
