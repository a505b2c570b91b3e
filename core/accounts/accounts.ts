import type { Knex } from 'knex';
import { fail, GatewayError } from '../base/errors';
import { newId } from '../base/ids';
import { log } from '../base/log';
import { formatUsd } from '../base/money';
import type { NewEvent } from '../events/event';
import { raiseEvents } from '../events/raise';
import { type AccountState, type AccountStatus, type Calls, type Ledger, LedgerUnavailable } from '../ledger/ledger';
import { askLedger } from '../ledger/unavailable';
import { writeAudit } from '../storage/audit';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../storage/page';

/** The stores of accounts, keys and credits: Postgres keeps the data permanently, and the ledger decides whether a call may spend. */
export interface Stores {
  readonly database: Knex;
  readonly ledger: Ledger;
  /** Reads balances that include the charges which this node has not yet reported to the ledger. */
  readonly calls: Pick<Calls, 'readAccount' | 'readKey' | 'readScope'>;
}

/** An account, which pays for the calls of its keys. `money` is undefined while the ledger is unreachable. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly status: AccountStatus;
  readonly createdAt: Date;
  /** The sum by which the account's requests cost more than their holds since the account was last unfrozen, in E8. */
  readonly excessE8: bigint;
  /** The markup on calls of keys without their own markup; see `CustomerPrices`. */
  readonly markup: string | undefined;
  /** The balance in E8 below which the account gets an event `balance.low`; undefined for none. */
  readonly balanceLowE8: bigint | undefined;
  /** What every call of the account demands of upstreams; undefined for nothing. */
  readonly require: string | undefined;
  readonly money: AccountState | undefined;
}

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly status: AccountStatus;
  readonly created_at: Date;
  readonly excess_e8: bigint;
  readonly markup: string | null;
  readonly balance_low_e8: bigint | null;
  readonly require: string | null;
}

interface NewAccount {
  readonly name: string;
  readonly markup?: string | null | undefined;
}

/** Changes of an account. A member that is absent is not changed; null removes the value. */
export interface AccountChanges extends Partial<NewAccount> {
  readonly balanceLowE8?: bigint | null | undefined;
  readonly require?: string | null | undefined;
}

/**
 * Creates an account: writes its row to Postgres, then sends it to the ledger. If the ledger is unreachable, the row stays and
 * LEDGER_UNAVAILABLE names the account. The first credit sends the account again, and so does recovery.
 */
export async function createAccount(
  stores: Stores,
  { name, markup = null }: NewAccount,
  actor: string,
): Promise<Account> {
  const row = { id: newId(), name, status: 'active', created_at: new Date(), markup } as const;
  await stores.database.transaction(async (transaction) => {
    await transaction('accounts').insert(row);
    await writeAudit(transaction, {
      actor,
      action: 'account.create',
      subject: subjectOf(row.id),
      after: { name, markup },
    });
  });
  await naming({ accountId: row.id }, () =>
    stores.database.transaction((transaction) => pushAccount(stores, transaction, row.id)),
  );
  return withMoney(stores, { ...row, excess_e8: 0n, balance_low_e8: null, require: null });
}

/** Reads an account and its money. @throws NOT_FOUND */
export async function readAccount(stores: Stores, accountId: string): Promise<Account> {
  return withMoney(stores, await readAccountRow(stores.database, accountId));
}

/** Lists accounts, newest first. `search` matches a part of an account's name or id, a user's e-mail address, or a key's name, id, prefix or suffix. */
export async function listAccounts(stores: Stores, asked: PageRequest, search?: string): Promise<Page<Account>> {
  const query = stores.database<AccountRow>('accounts');
  if (search !== undefined)
    query.whereRaw(`(${SEARCHED.join(' OR ')})`, { pattern: `%${search.replaceAll(/[\\%_]/g, '\\$&')}%` });
  return newestPage(query, asked, (row: AccountRow) => withMoney(stores, row));
}

const SEARCHED = [
  'name ILIKE :pattern',
  'id::text ILIKE :pattern',
  'id IN (SELECT account_id FROM users WHERE email ILIKE :pattern)',
  `id IN (SELECT account_id FROM api_keys AS key
    WHERE key.name ILIKE :pattern OR key.id::text ILIKE :pattern OR key.prefix || '…' || key.suffix ILIKE :pattern)`,
];

/**
 * Renames an account, or changes its markup, what it demands, or the balance that counts as low. The caller must send the returned `changedKeys` to the ledger, and the account's scope if
 * `isScopeChanged`, because the scope of an account with budgets has the account's name.
 * @throws NOT_FOUND
 */
export async function changeAccountRow(
  database: Knex,
  accountId: string,
  changes: AccountChanges,
  actor: string,
): Promise<{ readonly changedKeys: readonly string[]; readonly isScopeChanged: boolean }> {
  return database.transaction(async (transaction) => {
    const before = await lockAccount(transaction, accountId);
    const { name = before.name, markup = before.markup, require = before.require } = changes;
    const { balanceLowE8 = before.balance_low_e8 } = changes;
    const after = { name, markup, require, balance_low_e8: balanceLowE8 };
    await transaction('accounts')
      .where({ id: accountId })
      .update({ ...after, balance_low_e8: balanceLowE8?.toString() ?? null });
    const changed = { action: 'account.update', subject: subjectOf(accountId) };
    await writeAudit(transaction, { actor, ...changed, before: audited(before), after: audited(after) });
    // An account that never had budgets has no scope.
    const isScopeChanged =
      after.name !== before.name && (await raiseRev(transaction, 'scopes', { scope: `a:${accountId}` })) > 0;
    if (markup === before.markup && require === before.require) return { changedKeys: [], isScopeChanged };
    return { changedKeys: await raiseKeysOf(transaction, { account_id: accountId }), isScopeChanged };
  });
}

/**
 * Counts a change that concerns all active keys of an account or a team in their revisions, and returns their ids. The caller holds the
 * lock of the account, and then sends each key with `pushKey`.
 */
export async function raiseKeysOf(
  transaction: Knex.Transaction,
  owner: { readonly account_id: string } | { readonly team_id: string },
): Promise<readonly string[]> {
  const keys: { id: string }[] = await raiseRev(transaction, 'api_keys', { ...owner, status: 'active' }).returning(
    'id',
  );
  return keys.map(({ id }) => id);
}

/** Counts a change in the revisions of rows, which the caller then sends to the ledger. */
export function raiseRev(
  transaction: Knex.Transaction,
  table: 'api_keys' | 'scopes',
  which: object,
): Knex.QueryBuilder {
  return transaction(table)
    .where(which)
    .update({ rev: transaction.raw('rev + 1'), changed_at: transaction.fn.now() });
}

type Audited = Pick<AccountRow, 'name' | 'markup' | 'require' | 'balance_low_e8'>;

function audited({ name, markup, require, balance_low_e8 }: Audited): object {
  return {
    name,
    markup,
    ...(require !== null && { require }),
    balanceLowUsd: balance_low_e8 === null ? null : formatUsd(balance_low_e8),
  };
}

/** Freezes or unfreezes an account. The change applies to the next call of each of its keys. */
export async function setAccountStatus(
  stores: Stores,
  accountId: string,
  status: AccountStatus,
  actor: string,
): Promise<Account> {
  await stores.database.transaction(async (transaction) => {
    const row = await lockAccount(transaction, accountId);
    if (row.status === status) return;
    await transaction('accounts')
      .where({ id: accountId })
      .update({ status, changed_at: transaction.fn.now(), ...(status === 'active' && { excess_e8: 0 }) });
    await writeAudit(transaction, {
      actor,
      action: status === 'frozen' ? 'account.freeze' : 'account.unfreeze',
      subject: subjectOf(accountId),
      before: { status: row.status },
      after: { status },
    });
    if (status === 'frozen') await raiseEvents(transaction, log, frozen(row, actor));
  });
  await stores.database.transaction((transaction) => pushAccount(stores, transaction, accountId));
  return readAccount(stores, accountId);
}

/** The actor that freezes accounts whose requests cost more than their holds. */
export const FROZEN_FOR_EXCESS = 'excess';

function frozen({ id: accountId, name, excess_e8: excessE8 }: AccountRow, actor: string): readonly NewEvent[] {
  const isExcess = actor === FROZEN_FOR_EXCESS;
  const once = `${accountId} ${new Date().toISOString()}`;
  const data = { name, reason: isExcess ? 'excess' : 'operator' };
  const event: NewEvent = { type: 'account.frozen', accountId, once, data };
  if (!isExcess) return [event];
  return [event, { type: 'excess.account', once, data: { accountId, name, excessUsd: formatUsd(excessE8) } }];
}

/** Sends an account's row to the ledger. Holds the row's lock meanwhile, so that the later of two concurrent changes reaches the ledger last. */
export async function pushAccount(stores: Stores, transaction: Knex.Transaction, accountId: string): Promise<void> {
  const row = await lockAccount(transaction, accountId);
  await askLedger(() => stores.ledger.setAccount(accountId, row.status));
  await transaction('accounts').where({ id: accountId }).update({ told_status: row.status });
}

/** Sends changed accounts to the ledger if the process that changed them ended before it sent them. Returns the number of accounts. */
export async function tellChangedAccounts(stores: Stores, olderThanMs: number): Promise<number> {
  const ids = await readUntold(stores.database('accounts'), 'told_status IS DISTINCT FROM status', olderThanMs, 'id');
  for (const id of ids) await stores.database.transaction((trx) => pushAccount(stores, trx, id));
  return ids.length;
}

/** Returns the ids of rows that were changed some time ago and not sent to the ledger, the oldest changes first. */
export async function readUntold(
  table: Knex.QueryBuilder,
  isUntold: string,
  olderThanMs: number,
  id: 'id' | 'scope',
): Promise<readonly string[]> {
  const isOld = 'changed_at < now() - make_interval(secs => ?::float8)';
  const rows = table.whereRaw(`${isUntold} AND ${isOld}`, [olderThanMs / 1_000]);
  return rows.orderBy('changed_at').limit(500).pluck(id);
}

/** Checks that an account exists. @throws NOT_FOUND */
export async function requireAccount(database: Knex, accountId: string): Promise<void> {
  await readAccountRow(database, accountId);
}

/** Adds `details` to LEDGER_UNAVAILABLE: what was already written, so that the client can continue from there. */
export async function naming<T>(details: Readonly<Record<string, unknown>>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'LEDGER_UNAVAILABLE') throw error;
    throw fail(error.code, { ...error.options, details });
  }
}

/** Reads an account from the database only, without its money. @throws NOT_FOUND */
export async function readAccountRow(database: Knex, accountId: string): Promise<AccountRow> {
  return existing(await database<AccountRow>('accounts').where(idIs(accountId)).first(), 'account');
}

/** Reads an account that the caller is about to change, and locks its row. @throws NOT_FOUND */
export async function lockAccount(transaction: Knex.Transaction, accountId: string): Promise<AccountRow> {
  const query = transaction<AccountRow>('accounts').where(idIs(accountId));
  return existing(await query.forNoKeyUpdate().first(), 'account');
}

async function withMoney(stores: Stores, row: AccountRow): Promise<Account> {
  const money = await unlessUnavailable(() => stores.calls.readAccount(row.id));
  const { id, name, status, created_at: createdAt, excess_e8: excessE8, markup, balance_low_e8: balanceLowE8 } = row;
  const settings = {
    markup: markup ?? undefined,
    balanceLowE8: balanceLowE8 ?? undefined,
    require: row.require ?? undefined,
  };
  return { id, name, status, createdAt, excessE8, ...settings, money };
}

/** Returns undefined if the ledger is unreachable, so that lists stay readable. Values that only the ledger has are then absent, never 0. */
export async function unlessUnavailable<T>(read: () => Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof LedgerUnavailable) return undefined;
    throw error;
  }
}

function subjectOf(accountId: string): string {
  return `account:${accountId}`;
}
