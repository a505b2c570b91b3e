import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { newId } from '../base/ids';
import { writeAudit } from '../storage/audit';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import { lockAccount, naming, raiseKeysOf, requireAccount, type Stores } from './accounts';
import { deleteBudgetsOf } from './budgets';
import { pushKey } from './keys';
import { lockScope, pushScope, raiseScope, requireMember } from './scopes';

/** A team of an account. Keys that belong to it spend its budgets, and users are its members. */
export interface Team {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** The ids of its members, which are users of the account. */
  readonly members: readonly string[];
  /** The names of the tags that every call of its keys must have; undefined for none. */
  readonly requiredTags: readonly string[] | undefined;
  /** What every call of its keys demands of upstreams; undefined for nothing. */
  readonly require: string | undefined;
  readonly createdAt: Date;
}

interface NewTeam {
  readonly name: string;
  readonly requiredTags?: readonly string[] | null | undefined;
}

/** Changes of a team. A member that is absent is not changed; null removes the value. */
type TeamChanges = Partial<NewTeam> & { readonly require?: string | null | undefined };

interface TeamRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly required_tags: readonly string[] | null;
  readonly require: string | null;
  readonly created_at: Date;
  readonly deleted_at: Date | null;
}

type WholeTeamRow = TeamRow & { readonly members: readonly string[] };

const WHOLE = `teams.*, ARRAY(
  SELECT user_id::text FROM team_members WHERE team_id = teams.id ORDER BY user_id) AS members`;

/**
 * Creates a team, and its scope in the ledger. If the ledger is unreachable, the row stays, LEDGER_UNAVAILABLE names the team, and the
 * sweeper sends it later.
 * @throws NOT_FOUND if the account does not exist; LEDGER_UNAVAILABLE; CONFLICT if the account has a team of this name
 */
export async function createTeam(
  stores: Stores,
  accountId: string,
  { name, requiredTags = null }: NewTeam,
  actor: string,
): Promise<Team> {
  const row = { id: newId(), account_id: accountId, name, required_tags: requiredTags, created_at: new Date() };
  await stores.database.transaction(async (transaction) => {
    await lockAccount(transaction, accountId);
    await assertNameFree(transaction, row);
    await transaction('teams').insert({ ...row, required_tags: asJson(requiredTags) });
    await transaction('scopes').insert({ scope: scopeOf(row.id), account_id: accountId });
    const subject = subjectOf(row.id);
    await writeAudit(transaction, { actor, action: 'team.create', subject, after: { accountId, name, requiredTags } });
  });
  await pushTeam(stores, row.id);
  return toTeam({ ...row, require: null, deleted_at: null, members: [] });
}

/**
 * Lists the teams of an account, newest first; with `memberId` only the teams of this member, without their other members.
 * @throws NOT_FOUND if the account does not exist
 */
export async function listTeams(
  database: Knex,
  accountId: string,
  asked: PageRequest,
  memberId?: string,
): Promise<Page<Team>> {
  await requireAccount(database, accountId);
  const query = database<WholeTeamRow>('teams')
    .select(database.raw(WHOLE))
    .where({ account_id: accountId })
    .whereNull('deleted_at');
  if (memberId === undefined) return newestPage(query, asked, async (row: WholeTeamRow) => toTeam(row));
  query.whereIn('id', (own) => void own.select('team_id').from('team_members').where({ user_id: memberId }));
  return newestPage(query, asked, async (row: WholeTeamRow) => toTeam({ ...row, members: [memberId] }));
}

/**
 * Renames a team, or changes the tags that it requires or what it demands. These are sent to the ledger key by key, and hold on every node
 * once the promise resolves. If sending fails, the sweeper sends the remaining keys.
 * @throws NOT_FOUND, LEDGER_UNAVAILABLE; CONFLICT if another team of the account has this name
 */
export async function updateTeam(stores: Stores, teamId: string, changes: TeamChanges, actor: string): Promise<Team> {
  const { account_id: accountId } = await readTeam(stores.database, teamId);
  const changedKeys = await stores.database.transaction(async (transaction) => {
    // Names are chosen under the lock of the account, so that two requests cannot choose the same one.
    await lockAccount(transaction, accountId);
    const before = await lockTeam(transaction, teamId);
    const { name = before.name, requiredTags = before.required_tags, require = before.require } = changes;
    const isRenamed = name !== before.name;
    const isTagged = JSON.stringify(requiredTags) !== JSON.stringify(before.required_tags);
    const concernsKeys = isTagged || require !== before.require;
    if (!isRenamed && !concernsKeys) return [];
    if (isRenamed) {
      await assertNameFree(transaction, { id: teamId, account_id: accountId, name });
      await raiseScope(transaction, scopeOf(teamId));
    }
    await transaction('teams')
      .where({ id: teamId })
      .update({ name, require, required_tags: asJson(requiredTags) });
    const audited = { before: auditedTeam(before), after: { name, requiredTags, require } };
    await writeAudit(transaction, { actor, action: 'team.update', subject: subjectOf(teamId), ...audited });
    return concernsKeys ? raiseKeysOf(transaction, { team_id: teamId }) : [];
  });
  await naming({ teamId }, async () => {
    await pushScope(stores, scopeOf(teamId));
    for (const id of changedKeys) await pushKey(stores, id);
  });
  return toTeam(await readTeam(stores.database, teamId));
}

function auditedTeam({ name, required_tags: requiredTags, require }: TeamRow): object {
  return { name, requiredTags, require };
}

/**
 * Deletes a team with its budgets. Its row, its scope and what it has spent stay, because revoked keys, open sandboxes and usage records
 * name it. The promise resolves when the budgets hold on no node any more. Returns the team as it was.
 * @throws NOT_FOUND, LEDGER_UNAVAILABLE; CONFLICT if the team has active keys
 */
export async function deleteTeam(stores: Stores, teamId: string, actor: string): Promise<Team> {
  const deleted = await stores.database.transaction(async (transaction) => {
    const { account_id: accountId } = await lockTeam(transaction, teamId);
    await assertNoKeys(transaction, teamId);
    const row = await readTeam(transaction, teamId);
    const scope = scopeOf(teamId);
    await lockScope(transaction, { accountId, scope });
    await deleteBudgetsOf(transaction, scope, actor);
    await transaction('team_members').where({ team_id: teamId }).delete();
    await transaction('teams').where({ id: teamId }).update({ deleted_at: transaction.fn.now() });
    await raiseScope(transaction, scope);
    const before = { accountId, ...auditedTeam(row), members: row.members };
    await writeAudit(transaction, { actor, action: 'team.delete', subject: subjectOf(teamId), before });
    return row;
  });
  await pushTeam(stores, teamId);
  return toTeam(deleted);
}

/** Checks that no active key belongs to a team. The caller has locked the team, so that no key can join it meanwhile. @throws CONFLICT */
async function assertNoKeys(transaction: Knex.Transaction, teamId: string): Promise<void> {
  const [counted] = await transaction('api_keys')
    .where({ team_id: teamId, status: 'active' })
    .count<{ keys: bigint }[]>({ keys: '*' });
  const keys = Number(counted?.keys ?? 0);
  if (keys === 0) return;
  const message = `The team still has ${keys} active ${keys === 1 ? 'key' : 'keys'}. Revoke them or give them another \`teamId\` first.`;
  throw fail('CONFLICT', { message });
}

/** Adds a user of the account to a team. Safe to repeat. @throws NOT_FOUND */
export async function addTeamMember(database: Knex, teamId: string, userId: string, actor: string): Promise<Team> {
  return changeMembers(database, { teamId, userId }, async (transaction) => {
    const added = await transaction('team_members')
      .insert({ team_id: teamId, user_id: userId })
      .onConflict(['team_id', 'user_id'])
      .ignore()
      .returning('user_id');
    if (added.length === 0) return;
    const subject = subjectOf(teamId);
    await writeAudit(transaction, { actor, action: 'team.member.add', subject, after: { userId } });
  });
}

/** Removes a user from a team. Keys of the user in the team stay as they are. Safe to repeat. @throws NOT_FOUND */
export async function removeTeamMember(database: Knex, teamId: string, userId: string, actor: string): Promise<Team> {
  return changeMembers(database, { teamId, userId }, async (transaction) => {
    const removed = await transaction('team_members').where({ team_id: teamId, user_id: userId }).delete();
    if (removed === 0) return;
    const subject = subjectOf(teamId);
    await writeAudit(transaction, { actor, action: 'team.member.remove', subject, before: { userId } });
  });
}

async function changeMembers(
  database: Knex,
  { teamId, userId }: { readonly teamId: string; readonly userId: string },
  change: (transaction: Knex.Transaction) => Promise<void>,
): Promise<Team> {
  return database.transaction(async (transaction) => {
    const { account_id: accountId } = await lockTeam(transaction, teamId);
    await requireMember(transaction, { accountId, userId, param: 'userId' });
    await change(transaction);
    return toTeam(await readTeam(transaction, teamId));
  });
}

/** @throws CONFLICT if another team of the account has this name */
async function assertNameFree(
  transaction: Knex.Transaction,
  { id, account_id, name }: Pick<TeamRow, 'id' | 'account_id' | 'name'>,
): Promise<void> {
  const other = await transaction('teams')
    .where({ account_id, name })
    .whereNull('deleted_at')
    .whereNot({ id })
    .first('id');
  if (other === undefined) return;
  const message = 'name: the account already has a team of this name. Choose another name, or rename that team.';
  throw fail('CONFLICT', { param: 'name', message });
}

async function lockTeam(transaction: Knex.Transaction, teamId: string): Promise<TeamRow> {
  const query = transaction('teams').where(idIs(teamId)).whereNull('deleted_at');
  return existing(await query.forUpdate().first<TeamRow | undefined>(), 'team');
}

async function readTeam(database: Knex, teamId: string): Promise<WholeTeamRow> {
  const query = database('teams').where(idIs(teamId)).whereNull('deleted_at').select(database.raw(WHOLE));
  return existing(await query.first<WholeTeamRow | undefined>(), 'team');
}

async function pushTeam(stores: Stores, teamId: string): Promise<void> {
  await naming({ teamId }, () => pushScope(stores, scopeOf(teamId)));
}

function toTeam(row: WholeTeamRow): Team {
  const { id, account_id: accountId, name, members, required_tags: requiredTags, created_at: createdAt } = row;
  const required = { requiredTags: requiredTags ?? undefined, require: row.require ?? undefined };
  return { id, accountId, name, members, ...required, createdAt };
}

/** Returns a list as JSON text, because its column is JSON. */
function asJson(texts: readonly string[] | null): string | null {
  return texts === null ? null : JSON.stringify(texts);
}

function scopeOf(teamId: string): string {
  return `t:${teamId}`;
}

function subjectOf(teamId: string): string {
  return `team:${teamId}`;
}
