import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { writeAudit } from '../storage/audit';
import { hashToken } from './sessions';
import { findUser, type User } from './users';

interface SignInLink {
  readonly token: string;
  readonly expiresAt: Date;
}

/** Makes a token that signs this user in once. Only its hash is stored. @throws NOT_FOUND; CONFLICT if the user is disabled */
export async function makeSignInLink(
  database: Knex,
  userId: string,
  lifetimeMs: number,
  actor: string,
): Promise<SignInLink> {
  const user = await findUser(database, userId);
  if (user.status !== 'active') throw fail('CONFLICT', { message: 'The user is disabled. Enable it first.' });
  const token = randomBytes(32).toString('base64url');
  const expiresAt = new Date(Date.now() + lifetimeMs);
  await database.transaction(async (transaction) => {
    await transaction('sign_in_links').where('expires_at', '<', new Date()).delete();
    await transaction('sign_in_links').insert({ token_hash: hashToken(token), user_id: userId, expires_at: expiresAt });
    const subject = `user:${userId}`;
    await writeAudit(transaction, { actor, action: 'user.link', subject, after: { expiresAt } });
  });
  return { token, expiresAt };
}

/** Deletes a sign-in link, so that it works only once, and returns its user. @throws SIGN_IN_FAILED if the link has expired or was used */
export async function takeSignInLink(database: Knex, token: string): Promise<User> {
  const [taken]: { user_id: string }[] = await database('sign_in_links')
    .where({ token_hash: hashToken(token) })
    .whereRaw('expires_at > now()')
    .delete()
    .returning('user_id');
  if (taken === undefined)
    throw fail('SIGN_IN_FAILED', { message: 'The sign-in link has expired or was already used. Request a new one.' });
  return findUser(database, taken.user_id);
}
