import type { Knex } from 'knex';
import { fail, type GatewayError } from '../base/errors';
import { KEY_LIMIT_ROWS, type KeyLimitChanges, type KeyLimitColumns, limitsOfRow } from '../ledger/limit-fields';
import { missing, UUID } from '../storage/page';

/** What the role `member` may do with API keys: make and change its own ones in its own teams, without moving them or raising a limit. */

interface WantedOwners {
  readonly teamId?: string | null | undefined;
  readonly memberId?: string | null | undefined;
}

interface OwnedRow extends KeyLimitColumns {
  readonly team_id: string | null;
  readonly member_id: string | null;
}

/** Returns a condition for `whereIn` that selects the ids of a member's keys. */
export function keysOfMember(memberId: string): (query: Knex.QueryBuilder) => void {
  return (query) => void query.select('id').from('api_keys').where({ member_id: memberId });
}

/**
 * Returns the member to whose own records an API key is restricted: its member, if that has the role `member`. Otherwise members could read with
 * their keys what the console does not show them.
 */
export async function restrictionOfKey(database: Knex, keyId: string): Promise<string | undefined> {
  const row = await database('api_keys')
    .join('users', 'users.id', 'api_keys.member_id')
    .where({ 'api_keys.id': keyId, 'users.role': 'member' })
    .first<{ readonly id: string } | undefined>('users.id');
  return row?.id;
}

/**
 * Returns the team and the member of a key that a member makes: the member itself, and the team that it names or else its first one, which
 * is the oldest. A member without teams makes keys without a team. @throws FORBIDDEN for another member, or a team that is not the member's
 */
export async function ownersForMember(
  transaction: Knex.Transaction,
  memberId: string,
  wanted: WantedOwners,
): Promise<Pick<OwnedRow, 'team_id' | 'member_id'>> {
  if ((wanted.memberId ?? memberId) !== memberId) throw notOwn('memberId', 'you can make API keys only for yourself');
  const own = transaction('team_members').where({ user_id: memberId }).forShare();
  if (wanted.teamId === undefined || wanted.teamId === null) {
    const [first] = await own.orderBy('team_id').limit(1).select('team_id');
    return { team_id: first?.team_id ?? null, member_id: memberId };
  }
  const team = UUID.test(wanted.teamId) ? await own.where({ team_id: wanted.teamId }).first('team_id') : undefined;
  if (team === undefined) throw notOwn('teamId', 'you are not in this team');
  return { team_id: wanted.teamId, member_id: memberId };
}

/**
 * Checks a change that a member makes to a key whose row is locked.
 * @throws NOT_FOUND if the key is not its own; FORBIDDEN if it moves the key, raises a limit, or changes its demands or required tags
 */
export function assertOwnKey(
  before: OwnedRow,
  changes: WantedOwners & KeyLimitChanges & { readonly requiredTags?: unknown; readonly require?: unknown },
  memberId: string,
): void {
  if (before.member_id !== memberId) throw missing('key');
  const { teamId = before.team_id, memberId: owner = memberId } = changes;
  if (teamId !== before.team_id) throw notOwn('teamId', 'only an owner or admin moves API keys');
  if (owner !== memberId) throw notOwn('memberId', 'only an owner or admin moves API keys');
  if (changes.requiredTags !== undefined)
    throw notOwn('requiredTags', 'only an owner or admin changes required tags, which limits may depend on');
  if (changes.require !== undefined) throw notOwn('require', 'only an owner or admin changes what an API key demands');
  const limits = limitsOfRow(before);
  for (const [key, { name }] of KEY_LIMIT_ROWS) {
    const [had, wanted] = [limits[key], changes[key]];
    if (had === undefined || wanted === undefined) continue;
    if (wanted === null || wanted > had) throw notOwn(name, 'only an owner or admin raises or removes a limit');
  }
}

function notOwn(param: string, problem: string): GatewayError {
  return fail('FORBIDDEN', { param, message: `${param}: ${problem}` });
}
