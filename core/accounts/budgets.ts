import type { Knex } from 'knex';
import { fail, invalidParam } from '../base/errors';
import { newId } from '../base/ids';
import { formatUsd } from '../base/money';
import type { ScopeState } from '../ledger/ledger';
import { nameSql, readTagStates } from '../ledger/scope-rows';
import {
  dayNumberOf,
  type LimitWindow,
  limitingScopes,
  parseScope,
  SCOPE_LETTERS,
  type ScopeKind,
  spentOn,
  tagOf,
  tagScope,
  windowEndMs,
} from '../ledger/scopes';
import { writeAudit } from '../storage/audit';
import { existing, idIs, missing, newestPage, type Page, type PageRequest } from '../storage/page';
import { naming, requireAccount, type Stores, unlessUnavailable } from './accounts';
import { assertActive, lockKey, pushKey, raiseKey } from './keys';
import { lockScope, pushScope, raiseScope, requireMember, requireTeam } from './scopes';

/** A limit of what an account, a team, a member, an API key or the calls with a tag spend in one window of time. */
export interface Budget {
  readonly id: string;
  readonly accountId: string;
  readonly scope: ScopeKind;
  /** The id of the team, member or key; undefined for the account and for a tag. */
  readonly scopeId: string | undefined;
  /** The name of the account, team or key, the member's e-mail address, or the tag such as `customer=4711`. */
  readonly name: string;
  /** The name of the tag, and the value to which the budget belongs; without a value, each value of the name has the limit. */
  readonly tag: string | undefined;
  readonly value: string | undefined;
  readonly window: LimitWindow;
  readonly limitE8: bigint;
  /** The percentages of the limit whose reaching is reported, ascending. */
  readonly thresholds: readonly number[];
  /**
   * What the scope has spent in the current window, and what open calls hold; undefined while the ledger is unreachable, and for the name of
   * a tag, because each of its values counts alone.
   */
  readonly money: { readonly spentE8: bigint; readonly heldE8: bigint } | undefined;
  /** When the window ends; undefined for `total`. */
  readonly resetsAt: Date | undefined;
}

interface BudgetOwner {
  readonly scope: ScopeKind;
  /** The id of the team, member or key; null or undefined for the account and for a tag. */
  readonly scopeId?: string | null | undefined;
  /** The name of a tag, and its value; without one, the budget belongs to each value. */
  readonly tag?: string | null | undefined;
  readonly value?: string | null | undefined;
}

interface NewBudget extends BudgetOwner {
  readonly window: LimitWindow;
  readonly limitE8: bigint;
  readonly thresholds?: readonly number[] | undefined;
}

/** Changes of a budget. A member that is absent is not changed. */
interface BudgetChanges {
  readonly limitE8?: bigint | undefined;
  readonly thresholds?: readonly number[] | undefined;
}

interface BudgetRow {
  readonly id: string;
  readonly account_id: string;
  /** The name of the scope in the ledger, for example `t:<team>`. */
  readonly scope: string;
  readonly tag: string | null;
  readonly value: string | null;
  readonly window: LimitWindow;
  readonly limit_e8: bigint;
  readonly thresholds: readonly number[];
}

type NamedBudgetRow = BudgetRow & { readonly name: string };

const NAMED = `budgets.*, ${nameSql('budgets')} AS name`;

/** The thresholds of a budget that was created without any. */
export const USUAL_THRESHOLDS = [50, 80, 100] as const;

/**
 * Creates a budget. The promise resolves when every node applies it. If the ledger is unreachable, the row stays, LEDGER_UNAVAILABLE names
 * the budget, and the sweeper sends it later.
 * @throws NOT_FOUND, LEDGER_UNAVAILABLE; INVALID_FIELD for a wrong `scopeId`, `tag`, `value` or `window`; CONFLICT if the scope has a
 * budget for this window
 */
export async function createBudget(
  stores: Stores,
  accountId: string,
  { window, limitE8, thresholds = USUAL_THRESHOLDS, ...owner }: NewBudget,
  actor: string,
): Promise<Budget> {
  await requireAccount(stores.database, accountId);
  const scope = scopeNameOf(accountId, owner);
  const { tag = null, value = null } = owner;
  if (tag !== null && value === null && window === 'total')
    throw invalidParam('window', 'expected `day`, `week` or `month`, because a total is for one value of a tag');
  const row = { id: newId(), account_id: accountId, scope, tag, value, window, limit_e8: limitE8, thresholds };
  await stores.database.transaction(async (transaction) => {
    await lockOwner(transaction, row, 'require');
    await assertOnly(transaction, row);
    await transaction('budgets').insert({
      ...row,
      limit_e8: String(limitE8),
      thresholds: JSON.stringify(thresholds),
    });
    await raiseOwner(transaction, scope);
    await writeAudit(transaction, { actor, action: 'budget.create', subject: subjectOf(row.id), after: audited(row) });
  });
  await pushOwner(stores, row);
  return findBudget(stores, row.id);
}

/** Returns the name of a scope in the ledger. @throws INVALID_FIELD for a field that is missing, or that the scope does not have */
function scopeNameOf(accountId: string, { scope, scopeId, tag, value }: BudgetOwner): string {
  const id = scopeId ?? undefined;
  if (scope === 'tag') {
    if (id !== undefined) throw invalidParam('scopeId', 'leave it out for the scope `tag`; `tag` and `value` name it');
    if (typeof tag !== 'string') throw invalidParam('tag', 'expected the name of the tag');
    return tagScope(accountId, typeof value === 'string' ? `${tag}=${value}` : tag);
  }
  for (const [field, given] of Object.entries({ tag, value }))
    if (typeof given === 'string')
      throw invalidParam(field, `leave it out for the scope \`${scope}\`; only a tag has it`);
  if (scope === 'account') {
    if (id === undefined) return `a:${accountId}`;
    throw invalidParam('scopeId', 'leave it out for the scope `account`; the path names the account');
  }
  if (id === undefined) throw invalidParam('scopeId', `expected the id of the ${scope}`);
  return `${SCOPE_LETTERS[scope]}:${id}`;
}

/** Checks that a scope has no budget for this window yet. The caller has locked the scope. @throws CONFLICT */
async function assertOnly(transaction: Knex.Transaction, { scope, window }: Pick<BudgetRow, 'scope' | 'window'>) {
  const other = await transaction('budgets').where({ scope, window }).first<Pick<BudgetRow, 'id'> | undefined>('id');
  if (other === undefined) return;
  const message = `The ${parseScope(scope).kind} already has a budget for the window \`${window}\`. Change it: PATCH /admin/v1/budgets/${other.id}.`;
  throw fail('CONFLICT', { param: 'window', message });
}

/** Returns a budget with what is spent and held; with `memberId` only a budget of this member or its keys. @throws NOT_FOUND */
export async function findBudget(stores: Stores, budgetId: string, memberId?: string): Promise<Budget> {
  const row = await readRow(stores.database, budgetId);
  const own =
    memberId === undefined ||
    (await ownScopes(stores.database('budgets'), memberId).where({ id: budgetId }).first('id'));
  if (own === undefined) throw missing('budget');
  return withMoney(stores, row);
}

/** Restricts a query of budgets to those of a member and its keys. */
function ownScopes(query: Knex.QueryBuilder, memberId: string): Knex.QueryBuilder {
  return query.whereRaw(`(scope = :scope OR scope IN (SELECT 'k:' || id FROM api_keys WHERE member_id = :memberId))`, {
    scope: `m:${memberId}`,
    memberId,
  });
}

/** Lists the budgets of an account and of its teams, members, keys and tags, newest first; with `memberId` only those of this member and its keys. @throws NOT_FOUND if the account does not exist */
export async function listBudgets(
  stores: Stores,
  accountId: string,
  asked: PageRequest,
  { scope, memberId }: { readonly scope?: ScopeKind | undefined; readonly memberId?: string | undefined } = {},
): Promise<Page<Budget>> {
  const { database } = stores;
  await requireAccount(database, accountId);
  const query = database<NamedBudgetRow>('budgets').select(database.raw(NAMED)).where({ account_id: accountId });
  if (scope !== undefined) query.where('scope', 'like', `${SCOPE_LETTERS[scope]}:%`);
  if (memberId !== undefined) ownScopes(query, memberId);
  return newestPage(query, asked, (row: NamedBudgetRow) => withMoney(stores, row));
}

/** Changes a budget. The promise resolves when every node applies the change. @throws NOT_FOUND, LEDGER_UNAVAILABLE; CONFLICT for a revoked key */
export async function updateBudget(
  stores: Stores,
  budgetId: string,
  changes: BudgetChanges,
  actor: string,
): Promise<Budget> {
  const found = await readRow(stores.database, budgetId);
  await stores.database.transaction(async (transaction) => {
    await lockOwner(transaction, found, 'require');
    const before = await readRow(transaction, budgetId);
    const after = {
      ...before,
      limit_e8: changes.limitE8 ?? before.limit_e8,
      thresholds: changes.thresholds ?? before.thresholds,
    };
    await transaction('budgets')
      .where({ id: budgetId })
      .update({ limit_e8: String(after.limit_e8), thresholds: JSON.stringify(after.thresholds) });
    const subject = subjectOf(budgetId);
    await writeAudit(transaction, {
      actor,
      action: 'budget.update',
      subject,
      before: audited(before),
      after: audited(after),
    });
    if (after.limit_e8 !== before.limit_e8) await raiseOwner(transaction, found.scope);
  });
  await pushOwner(stores, found);
  return findBudget(stores, budgetId);
}

/** Deletes a budget. The promise resolves when no node applies it any more. What the scope has spent stays counted. @throws NOT_FOUND, LEDGER_UNAVAILABLE */
export async function deleteBudget(stores: Stores, budgetId: string, actor: string): Promise<Budget> {
  const found = await readRow(stores.database, budgetId);
  const deleted = await stores.database.transaction(async (transaction) => {
    await lockOwner(transaction, found, 'any');
    const row = await readRow(transaction, budgetId);
    await deleteRow(transaction, row, actor);
    await raiseOwner(transaction, row.scope);
    return row;
  });
  await pushOwner(stores, deleted);
  return withMoney(stores, deleted);
}

/** Deletes all budgets of a scope whose row the caller has locked. */
export async function deleteBudgetsOf(transaction: Knex.Transaction, scope: string, actor: string): Promise<void> {
  const rows: BudgetRow[] = await transaction<BudgetRow>('budgets').where({ scope }).orderBy('id');
  for (const row of rows) await deleteRow(transaction, row, actor);
}

async function deleteRow(transaction: Knex.Transaction, row: BudgetRow, actor: string): Promise<void> {
  await transaction('budgets').where({ id: row.id }).delete();
  await writeAudit(transaction, { actor, action: 'budget.delete', subject: subjectOf(row.id), before: audited(row) });
}

/**
 * Locks the row that counts the changes of a scope's budgets: that of the key, or that of the scope. `require`: checks that the account has
 * the team, member or key, and that the key is not revoked. @throws NOT_FOUND, CONFLICT
 *
 * For the value of a tag it locks the row of the name first, because its budgets decide whether calls with the name count.
 */
async function lockOwner(
  transaction: Knex.Transaction,
  { account_id: accountId, scope }: Pick<BudgetRow, 'account_id' | 'scope'>,
  check: 'require' | 'any',
): Promise<void> {
  const { kind, id } = parseScope(scope);
  const param = 'scopeId';
  if (kind === 'key') {
    const key = await lockKey(transaction, id);
    if (key.account_id !== accountId) throw missing('key');
    if (check === 'require') assertActive(key);
    return;
  }
  if (check === 'require' && kind === 'team') await requireTeam(transaction, { accountId, teamId: id, param });
  if (check === 'require' && kind === 'member') await requireMember(transaction, { accountId, userId: id, param });
  for (const each of limitingScopes(scope)) await lockScope(transaction, { accountId, scope: each });
}

async function raiseOwner(transaction: Knex.Transaction, scope: string): Promise<void> {
  const { kind, id } = parseScope(scope);
  if (kind === 'key') return raiseKey(transaction, id);
  for (const each of limitingScopes(scope)) await raiseScope(transaction, each);
}

/** Sends the limits of a scope to the ledger. @throws LEDGER_UNAVAILABLE that names the budget */
async function pushOwner(stores: Stores, { id: budgetId, scope }: Pick<BudgetRow, 'id' | 'scope'>): Promise<void> {
  const { kind, id } = parseScope(scope);
  await naming({ budgetId }, async () => {
    if (kind === 'key') await pushKey(stores, id);
    else for (const each of limitingScopes(scope)) await pushScope(stores, each);
  });
}

async function readRow(database: Knex, budgetId: string): Promise<NamedBudgetRow> {
  const query = database('budgets').where(idIs(budgetId)).select(database.raw(NAMED));
  return existing(await query.first<NamedBudgetRow | undefined>(), 'budget');
}

/** Returns what a scope has spent and holds. Postgres has what a tag's value has spent that the ledger does not count now. */
async function readMoney(
  { calls, database }: Stores,
  { account_id: accountId, scope }: Pick<BudgetRow, 'account_id' | 'scope'>,
): Promise<Pick<ScopeState, 'heldE8' | 'spending'> | undefined> {
  const state = await calls.readScope(accountId, scope);
  if (state !== undefined || tagOf(scope) === undefined || !scope.includes('=')) return state;
  const [known] = await readTagStates(database, [scope]);
  return known && { heldE8: 0n, spending: known.spending };
}

async function withMoney(stores: Stores, row: NamedBudgetRow): Promise<Budget> {
  const { id, account_id: accountId, scope: name, window, limit_e8: limitE8, thresholds } = row;
  const state = await unlessUnavailable(() => readMoney(stores, row));
  // A window never goes back, so that a clock behind the last charge reads the window of that charge.
  const day = Math.max(dayNumberOf(Date.now()), state?.spending.day ?? 0);
  const resetsAtMs = windowEndMs(window, day);
  return {
    id,
    accountId,
    ...ownerOf(name),
    name: row.name,
    tag: row.tag ?? undefined,
    value: row.value ?? undefined,
    window,
    limitE8,
    thresholds,
    money: state && { spentE8: spentOn(state.spending, day)[window], heldE8: state.heldE8 },
    resetsAt: resetsAtMs === undefined ? undefined : new Date(resetsAtMs),
  };
}

function ownerOf(name: string): { readonly scope: ScopeKind; readonly scopeId: string | undefined } {
  const { kind, id } = parseScope(name);
  return { scope: kind, scopeId: kind === 'account' || kind === 'tag' ? undefined : id };
}

function audited({ account_id: accountId, scope: name, window, limit_e8, thresholds, tag, value }: BudgetRow): object {
  const { scope, scopeId = null } = ownerOf(name);
  return {
    accountId,
    scope,
    scopeId,
    ...(tag !== null && { tag, value }),
    window,
    limitUsd: formatUsd(BigInt(limit_e8)),
    thresholds,
  };
}

function subjectOf(budgetId: string): string {
  return `budget:${budgetId}`;
}
