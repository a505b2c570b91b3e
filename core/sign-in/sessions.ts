import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { fail } from '../errors';
import { writeAudit } from '../storage/audit';
import { toUser, type User, type UserRow } from './users';

/** Somebody is signed in to the console. Of the token that the browser keeps, the database has only SHA-256. */
export interface Session {
  readonly token: string;
  readonly user: User;
  readonly createdAt: Date;
  /** Whatever is done with it, it ends here. */
  readonly expiresAt: Date;
}

/** How somebody has shown who they are. */
export type SignInWay = 'password' | 'link' | 'oidc';

export interface SessionTimes {
  /** It ends this long after its last use. */
  readonly idleMs: number;
  /** And this long after it began. */
  readonly lifetimeMs: number;
}

/** The last use is written down once in this time, not with every request. */
const NOTE_USE_EVERY_MS = 60_000;

/**
 * Begins a session of a user as they were when they were recognised. It begins none for a user that was disabled, got a new
 * password or was unbound from the identity that signs in meanwhile. Sessions that have ended are swept on the way. @throws SIGN_IN_FAILED
 */
export async function beginSession(
  database: Knex,
  { id, passwordChangedAt, identity }: User,
  way: SignInWay,
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

/** undefined when there is none, when it has ended, and when its user was disabled. */
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

/** Everywhere. */
export async function endSessions(database: Knex, userId: string): Promise<void> {
  await database('user_sessions').where({ user_id: userId }).delete();
}

/** What the page repeats in a header with every change: no other site can know it. Bound to the session, and kept nowhere. */
export function csrfTokenOf({ token }: Pick<Session, 'token'>): string {
  return createHmac('sha256', token).update('csrf').digest('base64url');
}

/** Tokens are 32 random bytes: a plain hash of one says nothing of it. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
