import type { Knex } from 'knex';
import { fail, GatewayError } from '../errors';
import { newId } from '../ids';
import { type Ledger, LedgerUnavailable } from '../ledger/ledger';
import type { AccountState, AccountStatus } from '../ledger/payer';
import { askLedger } from '../ledger/unavailable';
import { writeAudit } from '../storage/audit';
import { newestPage, type Page, type PageRequest, UUID } from '../storage/page';

/** Where accounts, keys and credits are kept: the database remembers, the ledger decides. */
export interface Stores {
  readonly database: Knex;
  readonly ledger: Ledger;
}

/** Who pays. `money` is undefined while the ledger cannot be asked. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly status: AccountStatus;
  readonly createdAt: Date;
  /** What its requests have cost above their holds since it was last unfrozen, in E8. */
  readonly excessE8: bigint;
  /** What its keys without one of their own pay, see `CustomerPrices`. */
  readonly markup: string | undefined;
  readonly money: AccountState | undefined;
}

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly status: AccountStatus;
  readonly created_at: Date;
  readonly excess_e8: bigint;
  readonly markup: string | null;
}

export interface NewAccount {
  readonly name: string;
  readonly markup?: string | null | undefined;
}

/** What is absent stays as it is; null removes. */
export type AccountChanges = Partial<NewAccount>;

/**
 * The row comes first, then the ledger is told; it is answered when both hold. When the ledger cannot be told, the row
 * stays and LEDGER_UNAVAILABLE names the account: its first credit tells the ledger again, and so does recovery.
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
  return withMoney(stores, { ...row, excess_e8: 0n });
}

/** @throws NOT_FOUND */
export async function readAccount(stores: Stores, accountId: string): Promise<Account> {
  return withMoney(stores, await readAccountRow(stores.database, accountId));
}

/**
 * Newest first. `search` is a part of the account's name or id, of a user's e-mail address, or of a key's name, id or shown ends.
 */
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
 * Renames an account, or changes what it pays. Another markup is a change of all its keys: `changedKeys` are to be told to the ledger.
 * @throws NOT_FOUND
 */
export async function changeAccountRow(
  database: Knex,
  accountId: string,
  { name, markup }: AccountChanges,
  actor: string,
): Promise<{ readonly changedKeys: readonly string[] }> {
  return database.transaction(async (transaction) => {
    const before = await lockRow(transaction, accountId);
    const after = { name: name ?? before.name, markup: markup === undefined ? before.markup : markup };
    await transaction('accounts').where({ id: accountId }).update(after);
    const audited = { action: 'account.update', subject: subjectOf(accountId) };
    const said = { name: before.name, markup: before.markup };
    await writeAudit(transaction, { actor, ...audited, before: said, after });
    if (after.markup === before.markup) return { changedKeys: [] };
    const keys: { id: string }[] = await transaction('api_keys')
      .where({ account_id: accountId, status: 'active' })
      .update({ rev: transaction.raw('rev + 1'), changed_at: transaction.fn.now() })
      .returning('id');
    return { changedKeys: keys.map(({ id }) => id) };
  });
}

/** Freezes or unfreezes; the next call of any of its keys meets it. */
export async function setAccountStatus(
  stores: Stores,
  accountId: string,
  status: AccountStatus,
  actor: string,
): Promise<Account> {
  await stores.database.transaction(async (transaction) => {
    const row = await lockRow(transaction, accountId);
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
  });
  await stores.database.transaction((transaction) => pushAccount(stores, transaction, accountId));
  return readAccount(stores, accountId);
}

/**
 * Tells the ledger what the row says. Under the row's lock, so that of two changes the ledger is told of the later one last.
 */
export async function pushAccount(stores: Stores, transaction: Knex.Transaction, accountId: string): Promise<void> {
  const row = await lockRow(transaction, accountId);
  await askLedger(() => stores.ledger.setAccount(accountId, row.status));
  await transaction('accounts').where({ id: accountId }).update({ told_status: row.status });
}

/** Accounts that were made or changed by a process that ended before it told the ledger; it is told of each once more. */
export async function tellChangedAccounts(stores: Stores, olderThanMs: number): Promise<number> {
  const rows: { id: string }[] = await stores
    .database('accounts')
    .whereRaw('told_status IS DISTINCT FROM status AND changed_at < now() - make_interval(secs => ?::float8)', [
      olderThanMs / 1_000,
    ])
    .orderBy('changed_at')
    .limit(500)
    .select('id');
  for (const { id } of rows) await stores.database.transaction((trx) => pushAccount(stores, trx, id));
  return rows.length;
}

/** @throws NOT_FOUND */
export async function requireAccount(database: Knex, accountId: string): Promise<void> {
  await readAccountRow(database, accountId);
}

/** Adds to LEDGER_UNAVAILABLE what was written already, so that whoever asked can go on from there. */
export async function naming<T>(details: Readonly<Record<string, unknown>>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'LEDGER_UNAVAILABLE') throw error;
    throw fail(error.code, { ...error.options, details });
  }
}

/** Without its money: asks the database only. @throws NOT_FOUND */
export async function readAccountRow(database: Knex, accountId: string): Promise<AccountRow> {
  const row = UUID.test(accountId)
    ? await database<AccountRow>('accounts').where({ id: accountId }).first()
    : undefined;
  if (row === undefined) throw noAccount();
  return row;
}

async function lockRow(transaction: Knex.Transaction, accountId: string): Promise<AccountRow> {
  if (!UUID.test(accountId)) throw noAccount();
  const row = await transaction<AccountRow>('accounts').where({ id: accountId }).forNoKeyUpdate().first();
  if (row === undefined) throw noAccount();
  return row;
}

function noAccount(): GatewayError {
  return fail('NOT_FOUND', { message: 'The account does not exist.' });
}

async function withMoney(stores: Stores, row: AccountRow): Promise<Account> {
  const money = await unlessUnavailable(() => stores.ledger.readAccount(row.id));
  const { id, name, status, created_at: createdAt, excess_e8: excessE8 } = row;
  return { id, name, status, createdAt, excessE8, markup: row.markup ?? undefined, money };
}

/** Lists stay readable while the ledger is away; what only it knows is missing then, never 0. */
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
