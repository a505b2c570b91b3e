import type { Knex } from 'knex';
import { requireAccount, type Stores, unlessUnavailable } from './accounts';
import { displayParts, hashApiKey, makeApiKey } from './api-key-format';
import { writeAudit } from './audit';
import { fail, type GatewayError } from './errors';
import { newId } from './ids';
import type { KeyState, KeyStatus } from './ledger/ledger';
import { askLedger } from './ledger/unavailable';
import { formatUsd } from './money';
import { decodeIdCursor, type Page, type PageRequest, toPage, UUID } from './page';

/** What an account shows to call with. `money` is undefined while the ledger cannot be asked. */
export interface AccountKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: KeyStatus;
  readonly limitE8: bigint | undefined;
  readonly allowedModels: readonly string[] | undefined;
  /** It may see how its calls are routed. */
  readonly debug: boolean;
  readonly createdAt: Date;
  readonly revokedAt: Date | undefined;
  readonly money: Pick<KeyState, 'spentE8' | 'heldE8'> | undefined;
}

export interface NewKey {
  readonly name: string;
  readonly limitE8: bigint | undefined;
  readonly allowedModels: readonly string[] | undefined;
  readonly debug?: boolean | undefined;
}

/** What is absent stays as it is; null removes. */
export interface KeyChanges {
  readonly name?: string | undefined;
  readonly limitE8?: bigint | null | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly debug?: boolean | undefined;
}

interface KeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly hash: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: KeyStatus;
  readonly limit_e8: bigint | null;
  readonly rev: number;
  readonly allowed_models: readonly string[] | null;
  readonly debug: boolean;
  readonly created_at: Date;
  readonly revoked_at: Date | null;
}

/**
 * Row, then ledger, then the key itself is answered, this once. When the ledger cannot be told, nobody will ever see the
 * key: its row is revoked, so that recovery does not bring it to life.
 */
export async function createKey(
  stores: Stores,
  accountId: string,
  wanted: NewKey,
  actor: string,
): Promise<{ readonly apiKey: string; readonly key: AccountKey }> {
  await requireAccount(stores.database, accountId);
  const apiKey = makeApiKey();
  const row: KeyRow = {
    id: newId(),
    account_id: accountId,
    name: wanted.name,
    hash: hashApiKey(apiKey),
    ...displayParts(apiKey),
    status: 'active',
    limit_e8: wanted.limitE8 ?? null,
    // Nodes begin with the plain settings of rev 0; a list of models is more than they know.
    rev: wanted.allowedModels === undefined ? 0 : 1,
    allowed_models: wanted.allowedModels ?? null,
    debug: wanted.debug ?? false,
    created_at: new Date(),
    revoked_at: null,
  };
  await stores.database.transaction(async (transaction) => {
    await transaction('api_keys').insert({ ...row, allowed_models: asJson(row.allowed_models) });
    await writeAudit(transaction, { actor, action: 'key.create', subject: `key:${row.id}`, after: audited(row) });
  });
  try {
    await pushKey(stores, row.id);
  } catch (error) {
    await markRevoked(stores, row.id, actor);
    throw error;
  }
  return { apiKey, key: await withMoney(stores, row) };
}

/** @throws NOT_FOUND; CONFLICT when it is revoked */
export async function updateKey(
  stores: Stores,
  keyId: string,
  changes: KeyChanges,
  actor: string,
): Promise<AccountKey> {
  await stores.database.transaction(async (transaction) => {
    const before = await lockRow(transaction, keyId);
    if (before.status === 'revoked') throw fail('CONFLICT', { message: 'The key is revoked and cannot be changed.' });
    const after: KeyRow = {
      ...before,
      name: changes.name ?? before.name,
      limit_e8: changes.limitE8 === undefined ? before.limit_e8 : changes.limitE8,
      allowed_models: changes.allowedModels === undefined ? before.allowed_models : changes.allowedModels,
      debug: changes.debug ?? before.debug,
      rev: before.rev + 1,
    };
    const { name, limit_e8, debug, rev } = after;
    await transaction('api_keys')
      .where({ id: keyId })
      .update({ name, limit_e8, debug, rev, allowed_models: asJson(after.allowed_models) });
    await writeAudit(transaction, {
      actor,
      action: 'key.update',
      subject: `key:${keyId}`,
      before: audited(before),
      after: audited(after),
    });
  });
  return withMoney(stores, await pushKey(stores, keyId));
}

/** Answered when database and ledger both hold it: from then on no node admits the key. Safe to repeat. */
export async function revokeKey(stores: Stores, keyId: string, actor: string): Promise<AccountKey> {
  await markRevoked(stores, keyId, actor);
  return withMoney(stores, await pushKey(stores, keyId));
}

/** @throws NOT_FOUND for an account that is not there. Newest first. */
export async function listKeys(
  stores: Stores,
  accountId: string,
  { limit, cursor }: PageRequest,
): Promise<Page<AccountKey>> {
  await requireAccount(stores.database, accountId);
  const query = stores
    .database<KeyRow>('api_keys')
    .where({ account_id: accountId })
    .orderBy('id', 'desc')
    .limit(limit + 1);
  const after = decodeIdCursor(cursor);
  const rows: KeyRow[] = await (after === undefined ? query : query.where('id', '<', after));
  const page = toPage(
    rows,
    limit,
    (row) => [row.id],
    (row) => withMoney(stores, row),
  );
  return { items: await Promise.all(page.items), nextCursor: page.nextCursor };
}

async function markRevoked(stores: Stores, keyId: string, actor: string): Promise<void> {
  await stores.database.transaction(async (transaction) => {
    const before = await lockRow(transaction, keyId);
    if (before.status === 'revoked') return;
    const change = { status: 'revoked', revoked_at: new Date(), rev: before.rev + 1 } as const;
    await transaction('api_keys').where({ id: keyId }).update(change);
    await writeAudit(transaction, {
      actor,
      action: 'key.revoke',
      subject: `key:${keyId}`,
      before: audited(before),
      after: audited({ ...before, ...change }),
    });
  });
}

/** Tells the ledger what the row says, under the row's lock: of two changes the later one is told last. */
async function pushKey({ database, ledger }: Stores, keyId: string): Promise<KeyRow> {
  return database.transaction(async (transaction) => {
    const row = await lockRow(transaction, keyId);
    const { rev, name } = row;
    await askLedger(() =>
      ledger.setKey({
        accountId: row.account_id,
        keyId,
        hash: row.hash,
        status: row.status,
        limitE8: row.limit_e8 ?? undefined,
        settings: { rev, name, allowedModels: row.allowed_models ?? undefined },
      }),
    );
    return row;
  });
}

async function lockRow(transaction: Knex.Transaction, keyId: string): Promise<KeyRow> {
  if (!UUID.test(keyId)) throw noKey();
  const row = await transaction<KeyRow>('api_keys').where({ id: keyId }).forUpdate().first();
  if (row === undefined) throw noKey();
  return row as KeyRow;
}

function noKey(): GatewayError {
  return fail('NOT_FOUND', { message: 'There is no such key.' });
}

async function withMoney({ ledger }: Stores, row: KeyRow): Promise<AccountKey> {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    suffix: row.suffix,
    status: row.status,
    limitE8: row.limit_e8 ?? undefined,
    allowedModels: row.allowed_models ?? undefined,
    debug: row.debug,
    createdAt: row.created_at,
    revokedAt: row.revoked_at ?? undefined,
    money: await unlessUnavailable(() => ledger.readKey({ accountId: row.account_id, keyId: row.id })),
  };
}

function audited({ name, status, limit_e8, allowed_models, debug }: KeyRow): object {
  const balanceLimit = limit_e8 === null ? null : formatUsd(limit_e8);
  return { name, status, balanceLimit, allowedModels: allowed_models, debug };
}

function asJson(models: readonly string[] | null): string | null {
  return models === null ? null : JSON.stringify(models);
}

/** Asked for calls that want to be explained, and for no others: it is a query. A database that is away says no. */
export async function mayDebug(database: Knex, keyId: string): Promise<boolean> {
  try {
    const row = await database('api_keys').where({ id: keyId }).first<Pick<KeyRow, 'debug'> | undefined>('debug');
    return row?.debug === true;
  } catch {
    return false;
  }
}
