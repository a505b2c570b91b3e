import type { Knex } from 'knex';
import type { Ledger, LedgerInspection, OutboxEntry } from '../ledger';
import { findWaiting } from '../outbox/ship';
import { readScopes } from '../scope-rows';
import { chainOf, parseScope, tagOf } from '../scopes';
import { shardOf } from '../shard';
import {
  judgeAccount,
  judgeScope,
  type NamedScope,
  PATIENCE_MS,
  scopeDetail,
  sumByScope,
  type Violation,
  violation,
} from './invariants';
import { compareCredits, compareRecords } from './records';
import { addCharge, type Chain, compareEnds, compareSpending, followChains, lastSeqs, startChains } from './rows';

export interface VerifyOptions {
  readonly ledger: Ledger;
  readonly database: Knex;
  /** How long an entry may need to reach Postgres before the verification searches the outbox for it, in ms. */
  readonly patienceMs?: number;
}

interface VerifyRequest {
  /** How many accounts a page has at most. */
  readonly limit: number;
  /** The id of the last account of the previous page. */
  readonly after?: string | undefined;
  /** The only account to verify; undefined: a page of all accounts. */
  readonly accountId?: string | undefined;
  /** For how many past days usage records are compared with their entries. */
  readonly days: number;
}

interface Verified {
  readonly accounts: number;
  readonly entries: number;
  readonly violations: readonly Violation[];
  /** The id of the last account of this page; undefined on the last page. */
  readonly next: string | undefined;
}

/** How many scopes one view of the ledger contains. The next constant is how many outbox entries are read at once. */
const SCOPES_AT_ONCE = 500;
const OUTBOX_AT_ONCE = 20_000;
const ON_ITS_WAY_MS = 5_000;
const LOOK_AGAIN_MS = 100;

/**
 * Verifies one page of accounts, in the order of ids, while calls continue. It reads an account, its scopes and its holds at one moment. All
 * entries up to that moment are in the outbox or in rows of Postgres, which never change.
 * @throws LedgerUnavailable if the ledger is unavailable
 */
export async function verify(options: VerifyOptions, request: VerifyRequest): Promise<Verified> {
  const page = await readPage(options.database, request);
  const violations: Violation[] = [];
  let entries = 0;
  const groups = groupByShard(page.accounts);
  for (const [shard, accounts] of groups) {
    const done = await verifyShard(options, shard, accounts);
    violations.push(...done.violations);
    entries += done.entries;
  }
  const ids = page.accounts.map(({ id }) => id);
  violations.push(...(await compareEnds(options.database, ids)));
  violations.push(...(await compareCredits(options.database, ids)));
  violations.push(...(await compareRecords(options.database, ids, request.days)));
  return { accounts: ids.length, entries, violations, next: page.next };
}

/** Returns violations for outboxes whose oldest entry has waited longer than PATIENCE_MS. */
export async function verifyOutbox({ ledger }: VerifyOptions): Promise<readonly Violation[]> {
  const waiting = await findWaiting(ledger);
  return [...waiting.values()].flatMap(([oldest]) => {
    const ageMs = oldest === undefined ? 0 : Date.now() - Number.parseInt(oldest.id, 10);
    if (oldest === undefined || ageMs <= PATIENCE_MS) return [];
    const { accountId, seq, rid } = oldest;
    return [violation('outbox_old', { accountId, seq, rid }, `at most ${PATIENCE_MS} ms`, `${ageMs} ms`)];
  });
}

interface AccountRow {
  readonly id: string;
  /** Whether the account's row in Postgres is so old that the ledger must have the account, too. The gateway writes that row before the ledger. */
  readonly settled: boolean;
}

async function readPage(
  database: Knex,
  { limit, after, accountId }: VerifyRequest,
): Promise<{ accounts: readonly AccountRow[]; next: string | undefined }> {
  const query = database('accounts')
    .select('id')
    .select(database.raw(`created_at < now() - interval '${PATIENCE_MS} milliseconds' AS settled`))
    .orderBy('id')
    .limit(limit + 1);
  if (after !== undefined) query.where('id', '>', after);
  if (accountId !== undefined) query.where({ id: accountId });
  const rows: AccountRow[] = await query;
  const accounts = rows.slice(0, limit);
  return { accounts, next: rows.length > limit ? accounts.at(-1)?.id : undefined };
}

function groupByShard(accounts: readonly AccountRow[]): Map<number, AccountRow[]> {
  const groups = new Map<number, AccountRow[]>();
  for (const account of accounts) {
    const shard = shardOf(account.id);
    groups.set(shard, [...(groups.get(shard) ?? []), account]);
  }
  return groups;
}

/** A scope to verify. */
interface WantedScope extends NamedScope {
  /** Whether the ledger must have the scope: it is a key whose row in Postgres is old enough. */
  readonly isRequired: boolean;
}

async function verifyShard(
  options: VerifyOptions,
  shard: number,
  accounts: readonly AccountRow[],
): Promise<{ violations: readonly Violation[]; entries: number }> {
  const { ledger, database } = options;
  const ids = accounts.map(({ id }) => id);
  const scopes = await readWanted(database, ids);
  const tags = (await Promise.all(ids.map((id) => listTags(ledger, id)))).flat();
  const all = [...scopes, ...tags];
  const written = await lastSeqs(database, ids);
  const violations: Violation[] = [];
  const chains = await startChains(database, ids);
  let entries = 0;
  for (let first = 0; first < all.length; first += SCOPES_AT_ONCE) {
    const some = all.slice(first, first + SCOPES_AT_ONCE);
    const seen = await ledger.inspect(
      shard,
      ids,
      some.map(({ scope }) => scope),
    );
    const { found, ends } = await follow(options, shard, chains, seen, { some, all: first === 0 ? all : undefined });
    violations.push(...found, ...compareScopes(some, seen, ends));
    if (first > 0) continue;
    violations.push(...compareAccounts(accounts, seen, ends, written));
    entries = ends.reduce((sum, chain) => sum + chain.entries, 0);
  }
  return { violations: await withoutLowered(database, violations), entries };
}

/** Returns the accounts as scopes, their teams and members that Postgres has limits or spending of, and their keys. */
async function readWanted(database: Knex, accountIds: readonly string[]): Promise<readonly WantedScope[]> {
  const names = new Map<string, WantedScope>();
  const add = (each: WantedScope) => names.set(each.scope, each);
  for (const accountId of accountIds) add({ accountId, scope: `a:${accountId}`, isRequired: false });
  for (const { accountId, scope } of await readScopes(database, accountIds))
    if (tagOf(scope) === undefined) add({ accountId, scope, isRequired: false });
  const { rows } = await database.raw<{ rows: WantedScope[] }>(
    `SELECT account_id::text AS "accountId", 'k:' || id AS scope,
       created_at < now() - interval '${PATIENCE_MS} milliseconds' AS "isRequired"
     FROM api_keys WHERE account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb)) ORDER BY id`,
    { accountIds: JSON.stringify(accountIds) },
  );
  rows.forEach(add);
  return [...names.values()];
}

/** Returns the scopes of an account's tags that the ledger counts now. Postgres has many others. */
async function listTags(ledger: Ledger, accountId: string): Promise<readonly WantedScope[]> {
  return (await ledger.listTags(accountId)).map((scope) => ({ accountId, scope, isRequired: false }));
}

/** Returns scopes that the checked entries name and that are not among the known ones, for example those of deleted teams. */
function othersIn(chains: readonly Chain[], known: readonly NamedScope[]): readonly NamedScope[] {
  const names = new Set(known.map(({ scope }) => scope));
  return chains.flatMap(({ accountId, spentE8 }) =>
    [...spentE8.keys()].flatMap((scope) => (names.has(scope) ? [] : [{ accountId, scope }])),
  );
}

/**
 * Checks the entries of accounts up to the last entry that each account had when the ledger was read. Returns the ends of the chains with the
 * entries of the outbox; `chains` are followed only as far as Postgres has them, so that a later view continues there. `all` is undefined
 * for a later view.
 */
async function follow(
  { ledger, database, patienceMs = ON_ITS_WAY_MS }: VerifyOptions,
  shard: number,
  chains: readonly Chain[],
  { accounts }: LedgerInspection,
  scopes: { readonly some: readonly NamedScope[]; readonly all: readonly NamedScope[] | undefined },
): Promise<{ readonly found: readonly Violation[]; readonly ends: readonly Chain[] }> {
  const upto = new Map([...accounts].map(([id, { seq }]) => [id, seq]));
  const isBehind = (chain: Chain) => chain.seq < (upto.get(chain.accountId) ?? 0);
  const found = [...(await followChains(database, chains, upto))];
  const others = scopes.all === undefined ? [] : othersIn(chains, scopes.all);
  found.push(...(await compareSpending(database, chains, [...scopes.some, ...others])));
  for (const until = Date.now() + patienceMs; chains.some(isBehind) && Date.now() < until; ) {
    await new Promise((wake) => setTimeout(wake, LOOK_AGAIN_MS));
    found.push(...(await followChains(database, chains, upto)));
  }
  if (!chains.some(isBehind)) return { found, ends: chains };
  // The outbox is read before the rows of Postgres. If the shipper meanwhile deletes an entry from the outbox, the entry is already a row in
  // Postgres.
  const waiting = (await ledger.readOutbox([shard], OUTBOX_AT_ONCE)).get(shard) ?? [];
  found.push(...(await followChains(database, chains, upto)));
  const ends = chains.map((chain) => ({ ...chain, spentE8: new Map(chain.spentE8) }));
  found.push(...continueWith(waiting, ends, upto));
  if (waiting.length === OUTBOX_AT_ONCE) return { found, ends };
  const lost = ends
    .filter(isBehind)
    .map(({ accountId, seq }) =>
      violation('entry_lost', { accountId, seq: seq + 1 }, `entries up to ${upto.get(accountId)}`, `up to ${seq}`),
    );
  return { found: [...found, ...lost], ends };
}

/** Continues the check of each account with outbox entries that are not rows in Postgres yet. */
function continueWith(
  entries: readonly OutboxEntry[],
  chains: readonly Chain[],
  upto: ReadonlyMap<string, number>,
): readonly Violation[] {
  const byId = new Map(chains.map((chain) => [chain.accountId, chain]));
  return entries.flatMap(({ accountId, kind, keyId, seq, amountE8, postedE8, scopes = '' }) => {
    const chain = byId.get(accountId);
    if (chain === undefined || seq !== chain.seq + 1 || seq > (upto.get(accountId) ?? 0)) return [];
    const expected = chain.postedE8 + amountE8;
    chain.seq = seq;
    chain.entries += 1;
    chain.sumE8 += amountE8;
    chain.postedE8 = postedE8;
    if (kind === 'charge' && keyId !== undefined) addCharge(chain, chainOf(accountId, scopes, keyId), -amountE8);
    return postedE8 === expected ? [] : [violation('chain_broken', { accountId, seq }, expected, postedE8)];
  });
}

function compareAccounts(
  accounts: readonly AccountRow[],
  seen: LedgerInspection,
  chains: readonly Chain[],
  written: ReadonlyMap<string, number>,
): readonly Violation[] {
  return accounts.flatMap(({ id: accountId, settled }, index) => {
    const account = seen.accounts.get(accountId);
    const last = written.get(accountId) ?? 0;
    if (account === undefined)
      return settled || last > 0 ? [violation('account_missing', { accountId }, 'an account', 'none')] : [];
    const { seq, postedE8 } = account;
    const found = [...judgeAccount(accountId, seen)];
    if (last > seq) found.push(violation('ledger_behind', { accountId, seq }, last, seq));
    const chain = chains[index];
    if (chain?.seq === seq && chain.sumE8 !== postedE8)
      found.push(violation('posted_differs', { accountId, seq }, chain.sumE8, postedE8));
    return found;
  });
}

function compareScopes(
  scopes: readonly WantedScope[],
  seen: LedgerInspection,
  chains: readonly Chain[],
): readonly Violation[] {
  const byId = new Map(chains.map((chain) => [chain.accountId, chain]));
  const held = sumByScope(seen.holds);
  return scopes.flatMap((named) => {
    const account = seen.accounts.get(named.accountId);
    const money = seen.scopes.get(named.scope);
    if (account === undefined) return [];
    // The scope of a tag may leave the ledger at any time.
    if (money === undefined && tagOf(named.scope) !== undefined) return [];
    if (parseScope(named.scope).kind === 'key' && money === undefined)
      return named.isRequired ? [violation('key_missing', scopeDetail(named, null), 'a key', 'none')] : [];
    const found = [...judgeScope(named, seen, held)];
    const chain = byId.get(named.accountId);
    const chargedE8 = chain?.spentE8.get(named.scope) ?? 0n;
    // The ledger knows a team or a member from its first hold on.
    const spentE8 = money?.spentE8 ?? 0n;
    if (chain?.seq === account.seq && chargedE8 !== spentE8)
      found.push(violation('spent_differs', scopeDetail(named, account.seq), chargedE8, spentE8));
    return found;
  });
}

/** Drops violations of a limit that an operator lowered below what its scope had spent. */
async function withoutLowered(database: Knex, violations: readonly Violation[]): Promise<readonly Violation[]> {
  const kept: Violation[] = [];
  for (const each of violations) {
    if (each.invariant !== 'limit_exceeded' || !(await wasLowered(database, each))) kept.push(each);
  }
  return kept;
}

/**
 * Returns whether a key's limit was ever lowered, as the audit log shows for changes of the key and of its budget, or whether a scope's
 * budgets changed after it had spent this much.
 */
async function wasLowered(database: Knex, { scope, keyId }: Violation): Promise<boolean> {
  if (keyId === null) return wasSpentBefore(database, scope);
  const { rows } = await database.raw<{ rows: unknown[] }>(
    `SELECT 1 FROM audit_log WHERE subject = :subject AND action = 'key.update'
       AND coalesce((before ->> 'balanceLimit')::numeric, 'Infinity') > (after ->> 'balanceLimit')::numeric
     UNION ALL
     SELECT 1 FROM budgets JOIN audit_log ON subject = 'budget:' || budgets.id
     WHERE scope = :scope AND "window" = 'total'
       AND coalesce((before ->> 'limitUsd')::numeric, 'Infinity') > (after ->> 'limitUsd')::numeric
     LIMIT 1`,
    { subject: `key:${keyId}`, scope: `k:${keyId}` },
  );
  return rows.length > 0;
}

/**
 * Returns whether a scope had spent more than its limit when its budgets last changed. Holds that were open at the change may be settled up
 * to a day later.
 */
async function wasSpentBefore(database: Knex, scope: string | null): Promise<boolean> {
  const { rows } = await database.raw<{ rows: unknown[] }>(
    `SELECT 1 FROM scopes JOIN scope_spending AS spending USING (scope)
     WHERE scope = :scope AND spending.day <= ((changed_at AT TIME ZONE 'UTC') + interval '1 day')::date
     HAVING sum(spending.spent_e8) >
       coalesce((SELECT limit_e8 FROM budgets WHERE scope = :scope AND "window" = 'total'), 0)`,
    { scope },
  );
  return rows.length > 0;
}
