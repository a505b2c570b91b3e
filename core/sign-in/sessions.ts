import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { writeAudit } from '../storage/audit';
import { toUser, type User, type UserRow } from './users';

/** A user's session of the console. The database keeps only the SHA-256 of the token that the browser holds. */
export interface Session {
  readonly token: string;
  readonly user: User;
  readonly createdAt: Date;
  /** The latest end of the session, however much it is used. */
  readonly expiresAt: Date;
}

/** How a user signs in. */
export type SignInMethod = 'password' | 'link' | 'oidc' | 'invitation';

export interface SessionTimes {
  /** How long a session lasts after its last use. */
  readonly idleMs: number;
  /** How long a session lasts at most. */
  readonly lifetimeMs: number;
}

/** The minimum time between two writes of a session's last use, so that not every request writes. */
const NOTE_USE_EVERY_MS = 60_000;

/**
 * Begins a session of a user, and deletes sessions that have ended. Fails if the user was disabled, got a new password or lost this
 * identity after the caller read the user.
 * @throws SIGN_IN_FAILED
 */
export async function beginSession(
  database: Knex,
  { id, passwordChangedAt, identity }: User,
  way: SignInMethod,
  { idleMs, lifetimeMs }: SessionTimes,
): Promise<Session> {
  const token = randomBytes(32).toString('base64url');
  const createdAt = new Date();
  const expiresAt = new Date(createdAt.getTime() + lifetimeMs);
  const user = await database.transaction(async (transaction) => {
    await transaction('user_sessions').where('expires_at', '<', createdAt).delete();
    const row = await transaction<UserRow>('users')
      .where({
        id,
        status: 'active',
        password_changed_at: passwordChangedAt,
        ...(way === 'oidc' && {
          identity_issuer: identity?.issuer ?? null,
          identity_subject: identity?.subject ?? null,
        }),
      })
      .forShare()
      .first();
    if (row === undefined) throw fail('SIGN_IN_FAILED');
    await transaction('user_sessions').insert({
      token_hash: hashToken(token),
      user_id: id,
      created_at: createdAt,
      used_at: createdAt,
      expires_at: expiresAt,
      idle_seconds: Math.ceil(idleMs / 1_000),
    });
    await writeAudit(transaction, {
      actor: `user:${id}`,
      action: 'session.begin',
      subject: `user:${id}`,
      after: { way },
    });
    return toUser(row as UserRow);
  });
  return { token, user, createdAt, expiresAt };
}

interface FoundRow extends UserRow {
  readonly session_created_at: Date;
  readonly expires_at: Date;
  readonly used_at: Date;
}

/** Returns the session of a token; undefined if the session does not exist or has ended, or its user is disabled. */
export async function findSession(database: Knex, token: string): Promise<Session | undefined> {
  const hash = hashToken(token);
  const row: FoundRow | undefined = await database('user_sessions as session')
    .join('users', 'users.id', 'session.user_id')
    .where({ 'session.token_hash': hash, 'users.status': 'active' })
    .whereRaw('session.expires_at > now() AND session.used_at + make_interval(secs => session.idle_seconds) > now()')
    .first('users.*', 'session.created_at as session_created_at', 'session.expires_at', 'session.used_at');
  if (row === undefined) return undefined;
  if (Date.now() - row.used_at.getTime() > NOTE_USE_EVERY_MS) {
    await database('user_sessions').where({ token_hash: hash }).update({ used_at: database.fn.now() });
  }
  return { token, user: toUser(row), createdAt: row.session_created_at, expiresAt: row.expires_at };
}

export async function endSession(database: Knex, { token }: Session): Promise<void> {
  await database('user_sessions')
    .where({ token_hash: hashToken(token) })
    .delete();
}

/** Ends all sessions of a user. */
export async function endSessions(database: Knex, userId: string): Promise<void> {
  await database('user_sessions').where({ user_id: userId }).delete();
}

/**
 * Returns the token that the page repeats in a header with every change, and that no other site can know. It is derived from the
 * session and stored nowhere.
 */
export function csrfTokenOf({ token }: Pick<Session, 'token'>): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}

/** Hashes a token. A plain hash reveals nothing, because a token is 32 random bytes. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
