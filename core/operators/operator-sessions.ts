import { createHmac, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { hashToken, type SessionTimes } from '../sign-in/sessions';
import { writeAudit } from '../storage/audit';

/** A session of the operator's page. The database stores only the SHA-256 of the session token in the browser's cookie. */
export interface StoredSession {
  readonly token: string;
  /** SHA-256 of the named token that opened the session. For ADMIN_TOKEN, which may be guessable, an HMAC of its hash with the session's token as key. */
  readonly operatorToken: string;
  readonly createdAt: Date;
  /** The latest end of the session, even if the operator uses it constantly. */
  readonly expiresAt: Date;
}

interface SessionRow {
  readonly token_hash: string;
  readonly operator_token: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly used_at: Date;
  readonly idle_seconds: number;
}

interface Opener {
  /** SHA-256 of the operator's token, or of ADMIN_TOKEN. */
  readonly hash: string;
  readonly isAdmin: boolean;
  readonly actor: string;
}

/** How often the last use of a session is stored at most, so that not every request writes to the database. */
const NOTE_USE_EVERY_MS = 60_000;

/** Creates a session, and deletes expired sessions. */
export async function beginOperatorSession(
  database: Knex,
  { hash, isAdmin, actor }: Opener,
  { idleMs, lifetimeMs }: SessionTimes,
): Promise<StoredSession> {
  const token = randomBytes(32).toString('base64url');
  const operatorToken = isAdmin ? sealedBy(token, hash) : hash;
  const createdAt = new Date();
  const expiresAt = new Date(createdAt.getTime() + lifetimeMs);
  await database.transaction(async (transaction) => {
    await transaction('operator_sessions').where('expires_at', '<', createdAt).delete();
    await transaction<SessionRow>('operator_sessions').insert({
      token_hash: hashToken(token),
      operator_token: operatorToken,
      created_at: createdAt,
      used_at: createdAt,
      expires_at: expiresAt,
      idle_seconds: Math.ceil(idleMs / 1_000),
    });
    await writeAudit(transaction, { actor, action: 'operator-session.begin', subject: actor });
  });
  return { token, operatorToken, createdAt, expiresAt };
}

/** Returns the session of a token; undefined if it does not exist or has ended. */
export async function findOperatorSession(database: Knex, token: string): Promise<StoredSession | undefined> {
  const hash = hashToken(token);
  const row = await database<SessionRow>('operator_sessions')
    .where({ token_hash: hash })
    .whereRaw('expires_at > now() AND used_at + make_interval(secs => idle_seconds) > now()')
    .first();
  if (row === undefined) return undefined;
  if (Date.now() - row.used_at.getTime() > NOTE_USE_EVERY_MS)
    await database('operator_sessions').where({ token_hash: hash }).update({ used_at: database.fn.now() });
  return { token, operatorToken: row.operator_token, createdAt: row.created_at, expiresAt: row.expires_at };
}

export async function endOperatorSession(database: Knex, { token }: StoredSession): Promise<void> {
  await database('operator_sessions')
    .where({ token_hash: hashToken(token) })
    .delete();
}

/** Returns an HMAC of an operator token's hash. Its key is the session's token, which the database does not have. */
export function sealedBy(token: string, hash: string): string {
  return createHmac('sha256', token).update(hash).digest('hex');
}
