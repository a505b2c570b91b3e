import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { lockAccount, requireAccount } from '../accounts/accounts';
import { requireTeam } from '../accounts/scopes';
import { fail, type GatewayError } from '../base/errors';
import { newId } from '../base/ids';
import { writeAudit } from '../storage/audit';
import { idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import { type Changer, type MemberRole, requireOwnerFor } from './member-roles';
import { hashPassword } from './password';
import { hashToken } from './sessions';
import { addressTaken, canonicalEmail, insertUser, type User } from './users';

/** An invitation that is not accepted yet: who opens its link becomes a user of the account, with this address, role and teams. */
export interface Invitation {
  readonly id: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly teamIds: readonly string[];
  readonly expiresAt: Date;
}

interface NewInvitation {
  readonly email: string;
  readonly role: MemberRole;
  readonly teamIds?: readonly string[] | undefined;
}

interface InvitationRow {
  readonly id: string;
  readonly account_id: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly team_ids: readonly string[];
  readonly expires_at: Date;
}

/** How long an invitation can be accepted. */
const LIFETIME_MS = 7 * 86_400_000;

/**
 * Invites a person, and returns the token of the link this only time. An earlier invitation of the account for the same address ends.
 * @throws NOT_FOUND if the account or a team does not exist; CONFLICT if a user has this address; FORBIDDEN if only an owner may do it
 */
export async function createInvitation(
  database: Knex,
  accountId: string,
  { email: asked, role, teamIds = [] }: NewInvitation,
  { actor, ...by }: Changer,
): Promise<{ readonly token: string; readonly invitation: Invitation }> {
  requireOwnerFor(by, role);
  const token = randomBytes(32).toString('base64url');
  const email = canonicalEmail(asked);
  const expires_at = new Date(Date.now() + LIFETIME_MS);
  const row: InvitationRow = { id: newId(), account_id: accountId, email, role, team_ids: teamIds, expires_at };
  await database.transaction(async (transaction) => {
    await lockAccount(transaction, accountId);
    await requireSame(transaction, by);
    const user = await transaction('users').where({ email }).whereNot({ status: 'removed' }).first('id');
    if (user !== undefined) throw addressTaken();
    for (const [index, teamId] of teamIds.entries())
      await requireTeam(transaction, { accountId, teamId, param: `teamIds[${index}]` });
    await transaction('invitations').where('expires_at', '<', new Date()).delete();
    const replaced: InvitationRow[] = await transaction('invitations')
      .where({ account_id: accountId, email })
      .delete()
      .returning('*');
    for (const each of replaced) await noteWithdrawn(transaction, each, { actor, ...by });
    const stored = { team_ids: JSON.stringify(teamIds), token_hash: hashToken(token), invited_by: actor };
    await transaction('invitations').insert({ ...row, ...stored });
    const after = { accountId, email, role, teamIds, expiresAt: expires_at };
    await writeAudit(transaction, { actor, action: 'invitation.create', subject: subjectOf(row.id), after });
  });
  return { token, invitation: toInvitation(row) };
}

/** Checks that the inviting user still has its role, because the end of a role ends only the invitations that exist then. @throws FORBIDDEN */
async function requireSame(transaction: Knex.Transaction, { userId, role }: Omit<Changer, 'actor'>): Promise<void> {
  if (userId === undefined) return;
  const user = await transaction('users').where({ id: userId, role, status: 'active' }).forShare().first('id');
  if (user === undefined) throw fail('FORBIDDEN', { message: 'Your role has just changed. Load the page again.' });
}

/** Lists the invitations of an account that can still be accepted, newest first. @throws NOT_FOUND if the account does not exist */
export async function listInvitations(
  database: Knex,
  accountId: string,
  asked: PageRequest,
): Promise<Page<Invitation>> {
  await requireAccount(database, accountId);
  const query = database<InvitationRow>('invitations').where({ account_id: accountId }).whereRaw('expires_at > now()');
  return newestPage(query, asked, async (row: InvitationRow) => toInvitation(row));
}

/** Withdraws an invitation: its link no longer works. @throws NOT_FOUND, also if it was accepted; FORBIDDEN if only an owner may do it */
export async function deleteInvitation(
  database: Knex,
  invitationId: string,
  { actor, ...by }: Changer,
): Promise<Invitation> {
  return database.transaction(async (transaction) => {
    const query = transaction('invitations').where(idIs(invitationId));
    const [row]: InvitationRow[] = await query.delete().returning('*');
    if (row === undefined) throw fail('NOT_FOUND', { message: 'The invitation does not exist, or it was accepted.' });
    await noteWithdrawn(transaction, row, { actor, ...by });
    return toInvitation(row);
  });
}

/** Checks that an invitation may be withdrawn, and audits it. @throws FORBIDDEN if only an owner may do it */
async function noteWithdrawn(
  transaction: Knex.Transaction,
  { id, account_id: accountId, email, role }: InvitationRow,
  { actor, ...by }: Changer,
): Promise<void> {
  requireOwnerFor(by, role);
  const before = { accountId, email, role };
  await writeAudit(transaction, { actor, action: 'invitation.delete', subject: subjectOf(id), before });
}

/**
 * Accepts an invitation: creates its user, and deletes it in the same transaction, so that of several requests only one succeeds.
 * @throws SIGN_IN_FAILED if the token is wrong, was used or has expired, or if another user has got the address meanwhile
 */
export async function acceptInvitation(database: Knex, token: string, password: string): Promise<User> {
  const open = (from: Knex) =>
    from<InvitationRow>('invitations')
      .where({ token_hash: hashToken(token) } as never)
      .whereRaw('expires_at > now()');
  // Looks for the invitation before it hashes the password, because hashing is slow and guessers should not cause it.
  if ((await open(database).first('id')) === undefined) throw notAccepted();
  const passwordHash = await hashPassword(password);
  return database.transaction(async (transaction) => {
    const [taken] = (await open(transaction).delete().returning('*')) as InvitationRow[];
    if (taken === undefined) throw notAccepted();
    const { id: invitationId, account_id: accountId, email, role, team_ids } = taken;
    const user = await insertUser(transaction, { accountId, email, role, passwordHash, isInvited: true });
    if (user === undefined) throw notAccepted();
    const { rows } = await transaction.raw<{ rows: { team_id: string }[] }>(JOIN_TEAMS, {
      userId: user.id,
      accountId,
      teamIds: [...team_ids],
    });
    const subject = `user:${user.id}`;
    const after = {
      accountId,
      email,
      role,
      status: user.status,
      teamIds: rows.map(({ team_id }) => team_id),
      invitationId,
    };
    await writeAudit(transaction, { actor: subject, action: 'user.create', subject, after });
    return user;
  });
}

/** Teams that were deleted after the invitation are left out. */
const JOIN_TEAMS = `
  INSERT INTO team_members (team_id, user_id)
  SELECT id, :userId::uuid FROM teams
  WHERE id = ANY(:teamIds::uuid[]) AND account_id = :accountId AND deleted_at IS NULL FOR SHARE
  RETURNING team_id::text AS team_id`;

function notAccepted(): GatewayError {
  const message = 'The invitation has expired or was already used. Ask for a new one, or sign in if you have a user.';
  return fail('SIGN_IN_FAILED', { message });
}

function toInvitation({ id, email, role, team_ids: teamIds, expires_at: expiresAt }: InvitationRow): Invitation {
  return { id, email, role, teamIds, expiresAt };
}

function subjectOf(invitationId: string): string {
  return `invitation:${invitationId}`;
}
