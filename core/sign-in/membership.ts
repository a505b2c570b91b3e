import type { Knex } from 'knex';
import type { Stores } from '../accounts/accounts';
import { limitKeysOf, pushKeysOf } from '../accounts/keys';
import { addTeamMember, removeTeamMember } from '../accounts/teams';
import { GatewayError } from '../base/errors';
import { lockUser, type User } from './users';

/** What an identity provider decides about a member of an account. */
export interface Membership {
  /** The teams that the groups of the provider decide. */
  readonly teams: readonly { readonly group: string; readonly team: string }[];
  /** How long the keys of a member in teams work after a sign-in with the provider, in ms. */
  readonly forMs: number;
}

/** The share of `forMs` by which a later sign-in must extend it, so that not every sign-in sends all keys: a day of thirty. */
const WORTH_SENDING = 1 / 30;

/** The actor of the changes of teams in the audit log. */
const PROVIDER = 'identity-provider';

/**
 * Applies what an identity provider says when it signs a member in: joins and leaves the teams of its table, and lets the keys of the member in
 * teams work for another while. If the ledger is unreachable, the sweeper sends the keys later.
 */
export async function confirmMember(
  stores: Stores,
  user: Pick<User, 'id' | 'accountId'>,
  groups: readonly string[],
  { teams, forMs }: Membership,
): Promise<void> {
  await joinTeams(stores.database, user, groups, teams);
  const until = new Date(Date.now() + forMs);
  const isLater = await stores.database.transaction(async (transaction) => {
    const { confirmed_until: before } = await lockUser(transaction, user.id);
    if (before !== null && Math.abs(until.getTime() - before.getTime()) <= forMs * WORTH_SENDING) return false;
    await transaction('users').where({ id: user.id }).update({ confirmed_until: until });
    await limitKeysOf(transaction, user.id, until);
    return true;
  });
  if (isLater) await pushKeysOf(stores, user.id).catch(ignoreUnavailable);
}

function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof GatewayError) || error.code !== 'LEDGER_UNAVAILABLE') throw error;
}

/** Makes a user a member of exactly those teams of a table that its groups name. Teams that the table does not name stay as they are. */
async function joinTeams(
  database: Knex,
  { id, accountId }: Pick<User, 'id' | 'accountId'>,
  groups: readonly string[],
  table: Membership['teams'],
): Promise<void> {
  if (table.length === 0) return;
  const own: { id: string; isIn: boolean }[] = await database('teams')
    .where({ account_id: accountId })
    .whereIn(
      'id',
      table.map(({ team }) => team),
    )
    .whereNull('deleted_at')
    .select(
      'id',
      database.raw('EXISTS (SELECT FROM team_members WHERE team_id = teams.id AND user_id = ?) AS "isIn"', [id]),
    );
  for (const { id: teamId, isIn } of own) {
    const belongs = table.some(({ group, team }) => team === teamId && groups.includes(group));
    if (belongs && !isIn) await addTeamMember(database, teamId, id, PROVIDER);
    if (!belongs && isIn) await removeTeamMember(database, teamId, id, PROVIDER);
  }
}
