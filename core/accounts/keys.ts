import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { newId } from '../base/ids';
import { type AccessColumns, accessOf } from '../ledger/key-access';
import { readKeyRows } from '../ledger/key-rows';
import type { KeyState, KeyStatus } from '../ledger/ledger';
import {
  changeLimits,
  type KeyLimitChanges,
  type KeyLimitColumns,
  type KeyLimits,
  limitsOfRow,
  showLimits,
} from '../ledger/limit-fields';
import { limitsSql } from '../ledger/scope-rows';
import { LIMIT_WINDOWS, type LimitTexts } from '../ledger/scopes';
import { askLedger } from '../ledger/unavailable';
import { writeAudit } from '../storage/audit';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import {
  type Account,
  type AccountChanges,
  changeAccountRow,
  naming,
  raiseRev,
  readAccount,
  readUntold,
  requireAccount,
  type Stores,
  unlessUnavailable,
} from './accounts';
import { displayParts, hashApiKey, makeApiKey } from './key-format';
import { assertOwnKey, ownersForMember } from './member-keys';
import { type KeyRates, limitKeys } from './rates';
import { pushScope, requireMember, requireTeam } from './scopes';

/** An API key of an account. `money` is undefined while the ledger is unreachable. */
export interface AccountKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: KeyStatus;
  readonly limits: KeyLimits;
  readonly allowedModels: readonly string[] | undefined;
  /** The markup on the key's calls, instead of the account's markup; undefined if the key has none. */
  readonly markup: string | undefined;
  /** Whether the key's calls may see how the gateway routes them. */
  readonly debug: boolean;
  /** The team and the member (a user) of the account to which the key's calls belong; undefined for none. */
  readonly teamId: string | undefined;
  readonly memberId: string | undefined;
  /** The names of the tags that every call of the key must have; undefined for none. Its team may require more. */
  readonly requiredTags: readonly string[] | undefined;
  /** What every call of the key demands of upstreams, besides its team's and its account's demands; undefined for nothing. */
  readonly require: string | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  /** The client addresses and ranges that may use the key; undefined for all. */
  readonly allowedAddresses: readonly string[] | undefined;
  /** The end of the grace period in which the secret from before the last rotation still works. */
  readonly previousSecretUntil: Date | undefined;
  readonly revokedAt: Date | undefined;
  readonly money: Pick<KeyState, 'spentE8' | 'heldE8'> | undefined;
}

/** Changes of a key. A member that is absent is not changed; null removes the value. */
interface KeyChanges extends KeyLimitChanges {
  readonly name?: string | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly markup?: string | null | undefined;
  readonly debug?: boolean | undefined;
  readonly teamId?: string | null | undefined;
  readonly memberId?: string | null | undefined;
  readonly requiredTags?: readonly string[] | null | undefined;
  readonly require?: string | null | undefined;
  readonly expiresAt?: Date | null | undefined;
  readonly allowedAddresses?: readonly string[] | null | undefined;
}

interface NewKey extends KeyChanges {
  readonly name: string;
}

/** The stores, and the limits on creating keys. */
type KeyMaker = Stores & { readonly keys: { readonly rates: KeyRates } };

type Marked = { readonly markup: string | null; readonly require: string | null } | undefined;

interface KeyRow extends KeyLimitColumns, AccessColumns {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: KeyStatus;
  readonly rev: number;
  readonly allowed_models: readonly string[] | null;
  readonly markup: string | null;
  readonly debug: boolean;
  readonly member_id: string | null;
  readonly required_tags: readonly string[] | null;
  readonly require: string | null;
  readonly created_at: Date;
  readonly revoked_at: Date | null;
}

/** The columns of a key's row, and the limits of its spending. */
const KEY_COLUMNS = `api_keys.*, ${limitsSql("'k:' || api_keys.id")} AS limits`;

/**
 * Creates a key: writes its row, sends it to the ledger, and returns the secret this only time. If the ledger is unreachable, the client
 * never receives the secret. The row is then revoked, because otherwise recovery would enable the key.
 * `ownId` is a member who may make only its own keys, in its own teams.
 * @throws NOT_FOUND, RATE_LIMITED, LEDGER_UNAVAILABLE; CONFLICT if the account already has the largest number of keys, or for a disabled
 * user; FORBIDDEN if a member asks for a key of another member or team
 */
export async function createKey(
  stores: KeyMaker,
  accountId: string,
  wanted: NewKey,
  actor: string,
  ownId?: string,
): Promise<{ readonly apiKey: string; readonly key: AccountKey }> {
  await requireAccount(stores.database, accountId);
  const { rates } = stores.keys;
  await limitKeys(stores.database, accountId, rates);
  const apiKey = makeApiKey();
  const plain: KeyRow = {
    id: newId(),
    account_id: accountId,
    name: wanted.name,
    hash: hashApiKey(apiKey),
    ...displayParts(apiKey),
    status: 'active',
    ...changeLimits(wanted),
    rev: 0,
    allowed_models: wanted.allowedModels ?? null,
    markup: wanted.markup ?? null,
    debug: wanted.debug ?? false,
    team_id: wanted.teamId ?? null,
    member_id: wanted.memberId ?? null,
    required_tags: wanted.requiredTags ?? null,
    member_until: null,
    require: wanted.require ?? null,
    expires_at: wanted.expiresAt ?? null,
    allowed_addresses: wanted.allowedAddresses ?? null,
    previous_hash: null,
    previous_until: null,
    created_at: new Date(),
    revoked_at: null,
  };
  const row = await stores.database.transaction(async (transaction) => {
    // Locks the account's row, so that its markup and demands cannot change before this key exists. A later change then includes this key.
    const lock = transaction('accounts').where({ id: accountId });
    const account = await (rates.maxKeys === undefined ? lock.forShare() : lock.forUpdate()).first<Marked>(
      'markup',
      'require',
    );
    await assertRoom(transaction, accountId, rates);
    const owned = ownId === undefined ? plain : { ...plain, ...(await ownersForMember(transaction, ownId, wanted)) };
    const key = { ...owned, ...(await checkOwners(transaction, owned)) };
    // Nodes do not read a key with revision 0; they assume default settings. A key with a model list, a markup, an access rule, a team, a member,
    // required tags or demands has revision 1, so that nodes read it.
    const isPlain =
      key.allowed_models === null &&
      key.team_id === null &&
      key.member_id === null &&
      key.required_tags === null &&
      (key.require ?? account?.require ?? null) === null &&
      (key.markup ?? account?.markup ?? null) === null &&
      accessOf(key).access === undefined;
    const made = { ...key, rev: isPlain ? 0 : 1 };
    await transaction('api_keys').insert(columnsOf(made));
    await writeLimits(transaction, made);
    await writeAudit(transaction, { actor, action: 'key.create', subject: `key:${made.id}`, after: audited(made) });
    return made;
  });
  try {
    await pushKey(stores, row.id);
  } catch (error) {
    await markRevoked(stores, row.id, actor);
    throw error;
  }
  return { apiKey, key: await withMoney(stores, row) };
}

/**
 * Checks the team and the member that a key is about to get, and returns until when the member is confirmed.
 * @throws NOT_FOUND if they are not of the key's account; CONFLICT for a disabled user
 */
async function checkOwners(
  transaction: Knex.Transaction,
  key: Pick<KeyRow, 'account_id' | 'team_id' | 'member_id'>,
  before?: Pick<KeyRow, 'team_id' | 'member_id' | 'member_until'>,
): Promise<Pick<KeyRow, 'member_until'>> {
  const { account_id: accountId, team_id: teamId, member_id: userId } = key;
  if (teamId !== null && teamId !== before?.team_id)
    await requireTeam(transaction, { accountId, teamId, param: 'teamId' });
  if (userId === null) return { member_until: null };
  if (before !== undefined && userId === before.member_id) return { member_until: before.member_until };
  const member = await requireMember(transaction, { accountId, userId, param: 'memberId' });
  if (member.isActive) return { member_until: member.confirmedUntil };
  const message = 'memberId: the user is disabled. Enable the user first, or choose another.';
  throw fail('CONFLICT', { param: 'memberId', message });
}

/** Checks that an account may have one more key. @throws CONFLICT if it already has as many as allowed */
async function assertRoom(transaction: Knex.Transaction, accountId: string, { maxKeys }: KeyRates): Promise<void> {
  if (maxKeys === undefined) return;
  const [counted] = await transaction('api_keys')
    .where({ account_id: accountId, status: 'active' })
    .count({ keys: '*' });
  if (Number(counted?.['keys']) < maxKeys) return;
  const message = `The account already has ${maxKeys} keys (\`keys.maxKeys\`). Revoke one that is no longer used.`;
  throw fail('CONFLICT', { message });
}

/**
 * Changes a key, and sends the change to the ledger. The promise resolves when the change holds on every node; later calls of a key that
 * was moved count in its new team or member. `ownId` is a member who may change only its own keys. @throws NOT_FOUND, LEDGER_UNAVAILABLE; CONFLICT if the key is revoked, or for a disabled user;
 * FORBIDDEN if a member moves its key or raises a limit
 */
export async function updateKey(
  stores: Stores,
  keyId: string,
  changes: KeyChanges,
  actor: string,
  ownId?: string,
): Promise<AccountKey> {
  await changeKey(stores, keyId, { actor, action: 'key.update' }, async (before, transaction) => {
    if (ownId !== undefined) assertOwnKey(before, changes, ownId);
    assertActive(before);
    const { name, markup, debug, expiresAt, allowedModels, allowedAddresses, teamId, memberId, requiredTags, require } =
      changes;
    const owners = {
      team_id: teamId === undefined ? before.team_id : teamId,
      member_id: memberId === undefined ? before.member_id : memberId,
    };
    const member = await checkOwners(transaction, { account_id: before.account_id, ...owners }, before);
    return {
      ...owners,
      ...member,
      name: name ?? before.name,
      ...changeLimits(changes, before),
      allowed_models: allowedModels === undefined ? before.allowed_models : allowedModels,
      markup: markup === undefined ? before.markup : markup,
      debug: debug ?? before.debug,
      expires_at: expiresAt === undefined ? before.expires_at : expiresAt,
      allowed_addresses: allowedAddresses === undefined ? before.allowed_addresses : allowedAddresses,
      required_tags: requiredTags === undefined ? before.required_tags : requiredTags,
      require: require === undefined ? before.require : require,
    };
  });
  return withMoney(stores, await pushKey(stores, keyId));
}

/** Checks that a key may be changed. @throws CONFLICT if it is revoked */
export function assertActive({ status }: Pick<AccountKey, 'status'>): void {
  if (status === 'revoked')
    throw fail('CONFLICT', { message: 'The key is revoked and cannot be changed. Create a new key.' });
}

/**
 * Renames an account, or changes its markup, what it demands, or the balance that counts as low. These are sent to the ledger key by key,
 * and hold on every node for later calls once the promise resolves. If sending fails, the sweeper sends the remaining keys.
 * @throws NOT_FOUND, LEDGER_UNAVAILABLE
 */
export async function updateAccount(
  stores: Stores,
  accountId: string,
  changes: AccountChanges,
  actor: string,
): Promise<Account> {
  const { changedKeys, isScopeChanged } = await changeAccountRow(stores.database, accountId, changes, actor);
  await naming({ accountId }, async () => {
    if (isScopeChanged) await pushScope(stores, `a:${accountId}`);
    for (const id of changedKeys) await pushKey(stores, id);
  });
  return readAccount(stores, accountId);
}

/**
 * Rotates a key's secret and returns the new one this only time. The previous secret works until the grace period ends; an older one stops
 * now. Usage and limits stay with the key. If the ledger is unreachable, the client never receives the secret, and the previous one is
 * restored.
 * @throws NOT_FOUND, RATE_LIMITED, LEDGER_UNAVAILABLE; CONFLICT if the key is revoked or has expired
 */
export async function rotateKey(
  stores: KeyMaker,
  keyId: string,
  graceSeconds: number,
  actor: string,
): Promise<{ readonly apiKey: string; readonly key: AccountKey }> {
  const known = stores.database('api_keys').where(idIs(keyId));
  const owner = existing(await known.first<Pick<KeyRow, 'account_id'> | undefined>('account_id'), 'key');
  await limitKeys(stores.database, owner.account_id, stores.keys.rates);
  const apiKey = makeApiKey();
  const change = { actor, action: 'key.rotate' };
  const before = await changeKey(stores, keyId, change, ({ hash, status, expires_at }) => {
    const isOver = status === 'revoked' || (expires_at !== null && expires_at.getTime() <= Date.now());
    if (isOver) throw fail('CONFLICT', { message: 'The key is revoked or expired. Create a new key.' });
    const previous_until = new Date(Date.now() + graceSeconds * 1_000);
    return { hash: hashApiKey(apiKey), ...displayParts(apiKey), previous_hash: hash, previous_until };
  });
  try {
    return { apiKey, key: await withMoney(stores, await pushKey(stores, keyId)) };
  } catch (error) {
    const { hash, prefix, suffix, previous_hash, previous_until } = before;
    await changeKey(stores, keyId, change, () => ({ hash, prefix, suffix, previous_hash, previous_until }));
    throw error;
  }
}

interface KeyAudit {
  readonly actor: string;
  readonly action: string;
}

type RowChange = (
  before: KeyRow,
  transaction: Knex.Transaction,
) => Partial<KeyRow> | undefined | Promise<Partial<KeyRow> | undefined>;

/**
 * Changes a key's row under its lock, with a new revision and an audit entry. `changeOf` returns undefined if nothing changes. Returns the
 * row from before the change.
 */
async function changeKey({ database }: Stores, keyId: string, audit: KeyAudit, changeOf: RowChange): Promise<KeyRow> {
  return database.transaction((transaction) => changeKeyRow(transaction, keyId, audit, changeOf));
}

async function changeKeyRow(
  transaction: Knex.Transaction,
  keyId: string,
  { actor, action }: KeyAudit,
  changeOf: RowChange,
): Promise<KeyRow> {
  const before = await lockKey(transaction, keyId);
  const change = await changeOf(before, transaction);
  if (change === undefined) return before;
  const after = { ...before, ...change, rev: before.rev + 1 };
  const columns = columnsOf({ ...change, rev: after.rev });
  await transaction('api_keys')
    .where({ id: keyId })
    .update({ ...columns, changed_at: transaction.fn.now() });
  if (change.limits !== undefined) await writeLimits(transaction, after, before.limits);
  const shown = action === 'key.rotate' ? auditedSecret : audited;
  const subject = `key:${keyId}`;
  await writeAudit(transaction, { actor, action, subject, before: shown(before), after: shown(after) });
  return before;
}

/** Writes the limits of a key's spending as budgets of its scope. A budget that stays keeps its id and thresholds. */
async function writeLimits(
  transaction: Knex.Transaction,
  { id, account_id, limits }: Pick<KeyRow, 'id' | 'account_id' | 'limits'>,
  before: LimitTexts | null = null,
): Promise<void> {
  for (const window of LIMIT_WINDOWS) {
    const limit_e8 = limits?.[window];
    if (limit_e8 === before?.[window]) continue;
    const at = { scope: `k:${id}`, window };
    if (limit_e8 === undefined) await transaction('budgets').where(at).delete();
    else
      await transaction('budgets')
        .insert({ id: newId(), account_id, ...at, limit_e8 })
        .onConflict(['scope', 'window'])
        .merge(['limit_e8']);
  }
}

/** Counts a change of a key's budgets in the revision of the key, whose row the caller has locked. The caller then sends it with `pushKey`. */
export async function raiseKey(transaction: Knex.Transaction, keyId: string): Promise<void> {
  await raiseRev(transaction, 'api_keys', { id: keyId });
}

function auditedSecret({ suffix, previous_until }: KeyRow): object {
  return { suffix, previousSecretUntil: previous_until };
}

/** Revokes a key. Once the promise resolves, Postgres and the ledger have the revocation, and no node accepts either secret of the key. Safe to repeat. */
export async function revokeKey(stores: Stores, keyId: string, actor: string): Promise<AccountKey> {
  await markRevoked(stores, keyId, actor);
  return withMoney(stores, await pushKey(stores, keyId));
}

/** Returns a key of this account; with `memberId` only a key of this member. @throws NOT_FOUND */
export async function findKey(
  stores: Stores,
  accountId: string,
  keyId: string,
  memberId?: string,
): Promise<AccountKey> {
  const row: KeyRow | undefined = await stores
    .database('api_keys')
    .where({ ...idIs(keyId), account_id: accountId, ...(memberId !== undefined && { member_id: memberId }) })
    .select(stores.database.raw(KEY_COLUMNS))
    .first();
  return withMoney(stores, existing(row, 'key'));
}

/** Returns the start of the last call with each of these keys, by key id. Keys without calls are absent. */
export async function readLastUses(database: Knex, keyIds: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const { rows } = await database.raw<{ rows: { id: string; at: Date }[] }>(
    `SELECT id, at FROM unnest(?::uuid[]) AS id, LATERAL (
       SELECT created_at AS at FROM usage_records WHERE key_id = id ORDER BY created_at DESC LIMIT 1) AS last`,
    [[...keyIds]],
  );
  return new Map(rows.map(({ id, at }) => [id, at]));
}

interface KeyFilters {
  /** A part of the key's name, id, prefix or suffix. */
  readonly search?: string | undefined;
  readonly status?: KeyStatus | undefined;
  readonly memberId?: string | undefined;
}

/** Lists an account's keys, newest first. @throws NOT_FOUND if the account does not exist */
export async function listKeys(
  stores: Stores,
  accountId: string,
  asked: PageRequest,
  { search, status, memberId }: KeyFilters = {},
): Promise<Page<AccountKey>> {
  await requireAccount(stores.database, accountId);
  const query = stores
    .database<KeyRow>('api_keys')
    .select(stores.database.raw(KEY_COLUMNS))
    .where({
      account_id: accountId,
      ...(status !== undefined && { status }),
      ...(memberId !== undefined && { member_id: memberId }),
    });
  if (search !== undefined) {
    const pattern = `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`;
    query.whereRaw("(name ILIKE :pattern OR id::text ILIKE :pattern OR prefix || '…' || suffix ILIKE :pattern)", {
      pattern,
    });
  }
  return newestPage(query, asked, (row: KeyRow) => withMoney(stores, row));
}

async function markRevoked({ database }: Pick<Stores, 'database'>, keyId: string, actor: string): Promise<void> {
  await database.transaction((transaction) => markRevokedIn(transaction, keyId, actor));
}

async function markRevokedIn(transaction: Knex.Transaction, keyId: string, actor: string): Promise<void> {
  await changeKeyRow(transaction, keyId, { actor, action: 'key.revoke' }, ({ status }) =>
    status === 'revoked' ? undefined : { status: 'revoked', revoked_at: new Date() },
  );
}

/** Revokes the keys of a member whose row the caller has locked. The caller then sends them with `pushKeysOf`. */
export async function revokeKeysOf(transaction: Knex.Transaction, memberId: string, actor: string): Promise<void> {
  const active = { member_id: memberId, status: 'active' };
  const rows: { id: string }[] = await transaction('api_keys').where(active).orderBy('id').select('id');
  for (const { id } of rows) await markRevokedIn(transaction, id, actor);
}

/**
 * Sets until when the keys of a member in teams work; null for always. The caller has locked the row of the member, and then sends the keys
 * with `pushKeysOf`.
 */
export async function limitKeysOf(transaction: Knex.Transaction, memberId: string, until: Date | null): Promise<void> {
  const change = {
    member_until: until,
    rev: transaction.raw('rev + (team_id IS NOT NULL)::int'),
    changed_at: transaction.fn.now(),
  };
  await transaction('api_keys').where({ member_id: memberId, status: 'active' }).update(change);
}

/** Sends the keys of a member that the ledger may not have yet. */
export async function pushKeysOf(stores: Stores, memberId: string): Promise<void> {
  const untold = stores.database('api_keys').where({ member_id: memberId }).whereRaw('told_rev < rev');
  const rows: { id: string }[] = await untold.orderBy('id').select('id');
  for (const { id } of rows) await pushKey(stores, id);
}

/** Sends a key's row to the ledger. Holds the row's lock meanwhile, so that the later of two concurrent changes reaches the ledger last. */
export async function pushKey({ database, ledger }: Stores, keyId: string): Promise<KeyRow> {
  return database.transaction(async (transaction) => {
    const row = await lockKey(transaction, keyId);
    const [request] = await readKeyRows(transaction, 'key.id = :keyId', { keyId });
    await askLedger(() => ledger.setKey(existing(request, 'key')));
    await transaction('api_keys').where({ id: keyId }).update({ told_rev: row.rev });
    return row;
  });
}

/** Sends changed keys to the ledger if the process that changed them ended before it sent them. Returns the number of keys. */
export async function tellChangedKeys(stores: Stores, olderThanMs: number): Promise<number> {
  const ids = await readUntold(stores.database('api_keys'), 'told_rev < rev', olderThanMs, 'id');
  for (const id of ids) await pushKey(stores, id);
  return ids.length;
}

/** Reads a key that the caller is about to change, and locks its row. Reads the limits under the lock, so that they are the latest. @throws NOT_FOUND */
export async function lockKey(transaction: Knex.Transaction, keyId: string): Promise<KeyRow> {
  const row = existing(await transaction('api_keys').where(idIs(keyId)).forUpdate().first(), 'key');
  const { rows } = await transaction.raw<{ rows: Pick<KeyRow, 'limits'>[] }>(
    `SELECT ${limitsSql(':scope')} AS limits`,
    { scope: `k:${keyId}` },
  );
  return { ...row, limits: rows[0]?.limits ?? null };
}

async function withMoney({ calls }: Stores, row: KeyRow): Promise<AccountKey> {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    suffix: row.suffix,
    status: row.status,
    limits: limitsOfRow(row),
    allowedModels: row.allowed_models ?? undefined,
    markup: row.markup ?? undefined,
    debug: row.debug,
    teamId: row.team_id ?? undefined,
    memberId: row.member_id ?? undefined,
    requiredTags: row.required_tags ?? undefined,
    require: row.require ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    allowedAddresses: row.allowed_addresses ?? undefined,
    previousSecretUntil: row.previous_until ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    money: await unlessUnavailable(() => calls.readKey({ accountId: row.account_id, keyId: row.id })),
  };
}

function audited(row: KeyRow): object {
  const { name, status, allowed_models, markup, debug, expires_at: expiresAt, allowed_addresses } = row;
  const access = { expiresAt, allowedAddresses: allowed_addresses };
  const owners = {
    teamId: row.team_id,
    memberId: row.member_id,
    requiredTags: row.required_tags,
    require: row.require,
  };
  const settings = { allowedModels: allowed_models, markup, debug, ...owners };
  return { name, status, ...showLimits(limitsOfRow(row)), ...settings, ...access };
}

/** Returns the column values of a row, without the limits that are budgets. Lists become JSON text, because the columns are JSON. */
function columnsOf({ limits: _budgets, ...row }: Partial<KeyRow>): object {
  const asJson = (texts: readonly string[] | null) => (texts === null ? null : JSON.stringify(texts));
  const { allowed_models: models, allowed_addresses: addresses, required_tags: tags } = row;
  return {
    ...row,
    ...(models !== undefined && { allowed_models: asJson(models) }),
    ...(addresses !== undefined && { allowed_addresses: asJson(addresses) }),
    ...(tags !== undefined && { required_tags: asJson(tags) }),
  };
}

/**
 * Returns whether a key may see how its calls are routed; false if Postgres is unreachable. Call it only for calls that request an
 * explanation, because it queries Postgres.
 */
export async function mayDebug(database: Knex, keyId: string): Promise<boolean> {
  const nowMs = performance.now();
  const known = DEBUGGING.get(keyId);
  if (known !== undefined && nowMs < known.untilMs) return known.may;
  const may = await isDebugKey(database, keyId).catch(() => false);
  if (DEBUGGING.size >= MAX_REMEMBERED) DEBUGGING.clear();
  DEBUGGING.set(keyId, { may, untilMs: nowMs + BELIEVED_MS });
  return may;
}

/** How long a result is cached, in ms, because a client may request an explanation for every call. */
const BELIEVED_MS = 5_000;
const MAX_REMEMBERED = 1_000;
const DEBUGGING = new Map<string, { readonly may: boolean; readonly untilMs: number }>();

async function isDebugKey(database: Knex, keyId: string): Promise<boolean> {
  const row = await database('api_keys').where({ id: keyId }).first<Pick<KeyRow, 'debug'> | undefined>('debug');
  return row?.debug === true;
}
