import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { readScopeRow } from '../ledger/scope-rows';
import { parseScope } from '../ledger/scopes';
import { askLedger } from '../ledger/unavailable';
import { idIs } from '../storage/page';
import { pushAccount, raiseRev, readUntold, type Stores } from './accounts';

/** An account, a team, a member or a tag as a scope of spending, by its name in the ledger (see core/ledger/scopes.ts). API keys have their own rows. */
interface LimitedScope {
  readonly accountId: string;
  readonly scope: string;
}

/** Locks the row of a scope, which counts the changes of its limits. Creates the row of an account or member that never had limits. */
export async function lockScope(transaction: Knex.Transaction, { accountId, scope }: LimitedScope): Promise<void> {
  await transaction('scopes').insert({ scope, account_id: accountId, told_rev: 0 }).onConflict('scope').ignore();
  await transaction('scopes').where({ scope }).forUpdate().first('scope');
}

/** Counts a change of a scope's name or limits. The caller then sends it to the ledger with `pushScope`. */
export async function raiseScope(transaction: Knex.Transaction, scope: string): Promise<void> {
  await raiseRev(transaction, 'scopes', { scope });
}

/**
 * Sends the name and the limits of a scope to the ledger; resolves when they hold on every node. Holds the lock of the scope's row
 * meanwhile, so that the later of two concurrent changes reaches the ledger last.
 */
export async function pushScope(stores: Stores, scope: string): Promise<void> {
  await stores.database.transaction(async (transaction) => {
    const { kind } = parseScope(scope);
    const [, accountId = ''] = scope.split(':');
    if (kind === 'account' || kind === 'tag') await pushNewAccount(stores, transaction, accountId);
    await transaction('scopes').where({ scope }).forUpdate().first('scope');
    const request = await readScopeRow(transaction, scope);
    if (request === undefined) return;
    await askLedger(() => stores.ledger.setScope(request));
    await transaction('scopes').where({ scope }).update({ told_rev: request.rev });
  });
}

/** Sends an account to the ledger if it was created while the ledger was away, because the ledger takes no limits of an account that it does not know. */
async function pushNewAccount(stores: Stores, transaction: Knex.Transaction, accountId: string): Promise<void> {
  const untold = await transaction('accounts').where({ id: accountId }).whereNull('told_status').first('id');
  if (untold !== undefined) await pushAccount(stores, transaction, accountId);
}

/** Sends changed scopes to the ledger if the process that changed them ended before it sent them. Returns the number of scopes. */
export async function tellChangedScopes(stores: Stores, olderThanMs: number): Promise<number> {
  const scopes = await readUntold(stores.database('scopes'), 'told_rev < rev', olderThanMs, 'scope');
  for (const scope of scopes) await pushScope(stores, scope);
  return scopes.length;
}

/** Checks that an account has a team, which then stays until the end of the transaction. @throws NOT_FOUND that names the field */
export async function requireTeam(
  transaction: Knex.Transaction,
  { accountId, teamId, param }: { readonly accountId: string; readonly teamId: string; readonly param: string },
): Promise<void> {
  const query = transaction('teams')
    .where({ ...idIs(teamId), account_id: accountId })
    .whereNull('deleted_at');
  const row = await query.forShare().first('id');
  if (row === undefined) throw fail('NOT_FOUND', { param, message: `${param}: the account has no such team.` });
}

/** Checks that an account has a user, and returns whether the user is active and until when it is confirmed. @throws NOT_FOUND that names the field */
export async function requireMember(
  transaction: Knex.Transaction,
  { accountId, userId, param }: { readonly accountId: string; readonly userId: string; readonly param: string },
): Promise<{ readonly isActive: boolean; readonly confirmedUntil: Date | null }> {
  const query = transaction('users')
    .where({ ...idIs(userId), account_id: accountId })
    .whereNot({ status: 'removed' });
  const row = await query.forShare().first('status', 'confirmed_until');
  if (row === undefined) throw fail('NOT_FOUND', { param, message: `${param}: the account has no such user.` });
  return { isActive: row.status === 'active', confirmedUntil: row.confirmed_until };
}
