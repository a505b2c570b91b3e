import type { Knex } from 'knex';
import { getOrInsert } from '../base/collections';
import { withoutTimeLimit } from '../storage/silent-connections';
import { readKeyRows } from './key-rows';
import {
  type AccountSnapshot,
  type AccountStatus,
  CLOSED_MS,
  type ClosedEntry,
  type EntryKind,
  type Ledger,
  type OpenHold,
  type PaidIntent,
  type SetKeyRequest,
} from './ledger';
import { resendCredits } from './outbox/credits';
import { findWaiting, lockAllShards, type ShipOptions, shipShards } from './outbox/ship';
import { readScopeSpending, readScopes } from './scope-rows';
import { NO_SPENDING, scopesOf, tagOf } from './scopes';

/** How many accounts recovery reads at once, with their recently closed reservations. */
const ACCOUNTS_AT_ONCE = 100;

/** How many closed reservations of one account recovery restores at most. The ledger looks up earlier ones in Postgres. */
const MAX_CLOSED = 1_000;

/** The longest duration of a call whose Idempotency-Key recovery restores. Longer calls are rare. */
const MAX_CALL_MS = 45 * 60_000;

/** How often a long recovery logs its progress. */
const LOG_EVERY_MS = 2_000;

/** The Postgres advisory lock that lets only one process at a time recover. */
const RECOVERY_LOCK = 0x70_6c_68;

export interface RecoverOptions extends ShipOptions {
  readonly ledger: Ledger;
}

/** Fills the ledger from Postgres if the ledger is not ready. Every process does this at its start, whether it uses the ledger in Redis or the embedded one. */
export async function ensureReady(options: RecoverOptions): Promise<void> {
  if (!(await options.ledger.isReady())) await recover(options);
}

/**
 * Restores a ledger that is not ready from Postgres. It first ships what the outboxes still hold, then writes the accounts that are missing
 * or outdated, and finally opens the ledger. Processes that start at the same time wait for each other, and the later ones find the ledger
 * ready.
 */
export async function recover(given: RecoverOptions): Promise<void> {
  const options = { ...given, isRecovery: true };
  const { log } = options;
  let accounts: number | 'again' | undefined;
  do {
    await shipAll(options);
    accounts = await restoreLocked(options);
  } while (accounts === 'again');
  const credits = await resendCredits(options);
  if (accounts !== undefined) log.info({ accounts, credits }, 'the ledger was compared with Postgres and restored');
}

/**
 * Compares all accounts with Postgres under a lock, and returns how many accounts there were. Returns undefined if another process has
 * already recovered the ledger. Returns `again` if entries must be shipped first, or if the ledger was lost meanwhile.
 */
function restoreLocked(options: RecoverOptions): Promise<number | 'again' | undefined> {
  const { ledger, database } = options;
  // Waiting for the lock has no timeout, because another process may rightly hold it for long. If that process hangs, it loses the lock, because
  // Postgres ends transactions that are idle for too long.
  return withoutTimeLimit(database, async (trx) => {
    await trx.raw('SELECT pg_advisory_xact_lock(?::bigint)', [RECOVERY_LOCK]);
    if (await ledger.isReady()) return undefined;
    await lockAllShards(trx);
    if ((await findWaiting(ledger)).size > 0) return 'again';
    const begun = await ledger.begin();
    const restored = await restoreAccounts(options, trx);
    return (await ledger.open(begun)) === 'lost' ? 'again' : restored;
  });
}

/** Ships all entries. It waits for shards that another process is shipping, because recovery reads Postgres next and must find their entries there. */
async function shipAll(options: ShipOptions): Promise<void> {
  for (;;) {
    const waiting = await findWaiting(options.ledger);
    if (waiting.size === 0) return;
    const taken = await shipShards(options, waiting.keys());
    if (taken.length > 0) await new Promise((wake) => setTimeout(wake, 50));
  }
}

/** Restores all accounts, in batches by id. Every query uses the transaction, because the embedded database has only one connection. */
async function restoreAccounts({ ledger, log }: RecoverOptions, trx: Knex): Promise<number> {
  const [all] = await trx('accounts').count<{ count: bigint }[]>({ count: '*' });
  const total = Number(all?.count ?? 0);
  let done = 0;
  let loggedAt = Date.now();
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const accounts = await readAccounts(trx, after);
    const last = accounts.at(-1);
    if (last === undefined) return done;
    await ledger.restore(await readSnapshots(trx, accounts));
    done += accounts.length;
    after = last.id;
    if (Date.now() - loggedAt < LOG_EVERY_MS) continue;
    loggedAt = Date.now();
    log.info({ done, total }, 'comparing accounts of the ledger with Postgres');
  }
}

interface AccountRow {
  readonly id: string;
  readonly status: AccountStatus;
  readonly seq: string;
  readonly posted: string;
}

/** Reads accounts with their balances: the end of each account's chain, or 0 without entries. */
async function readAccounts(trx: Knex, after: string): Promise<readonly AccountRow[]> {
  const { rows } = await trx.raw<{ rows: AccountRow[] }>(
    `SELECT account.id::text, account.status, coalesce(chain.seq, 0)::text AS seq,
            coalesce(chain.posted_e8, 0)::text AS posted
     FROM accounts AS account LEFT JOIN ledger_accounts AS chain ON chain.account_id = account.id
     WHERE account.id > :after::uuid ORDER BY account.id LIMIT ${ACCOUNTS_AT_ONCE}`,
    { after },
  );
  return rows;
}

const OF_ACCOUNTS = 'key.account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:ids::jsonb))';

async function readSnapshots(trx: Knex, accounts: readonly AccountRow[]): Promise<readonly AccountSnapshot[]> {
  const accountIds = accounts.map(({ id }) => id);
  const ids = JSON.stringify(accountIds);
  const keyRows = await readKeyRows(trx, OF_ACCOUNTS, { ids });
  const scopeRows = await readScopes(trx, accountIds);
  const spending = await readScopeSpending(trx, [
    ...accountIds.map((id) => `a:${id}`),
    // The scopes of tags are read when a call needs them.
    ...scopeRows.map(({ scope }) => scope).filter((scope) => tagOf(scope) === undefined),
    ...keyRows.map(({ keyId }) => `k:${keyId}`),
  ]);
  const spentBy = (scope: string) => spending.get(scope) ?? NO_SPENDING;
  const keys = groupByAccount(keyRows.map((row) => ({ ...row, spending: spentBy(`k:${row.keyId}`) })));
  const scopes = groupByAccount(scopeRows.map((row) => ({ ...row, spending: spentBy(row.scope) })));
  const paid = await readIntents(trx, ids);
  const intents = new Map(paid.map((row) => [row.rid, toIntent(row)]));
  const closed = groupByAccount([...(await readClosed(trx, ids)), ...paid.filter(({ isReported }) => isReported)]);
  const open = groupByAccount(await readStillOpen(trx, accounts, new Map(keyRows.map((row) => [row.keyId, row]))));
  return accounts.map(({ id, status, seq, posted }) => ({
    accountId: id,
    status,
    postedE8: BigInt(posted),
    seq: Number(seq),
    spending: spentBy(`a:${id}`),
    scopes: scopes.get(id) ?? [],
    keys: keys.get(id) ?? [],
    closed: (closed.get(id) ?? []).map((row) => ({ ...toClosed(row), intent: intents.get(row.rid) })),
    open: open.get(id) ?? [],
  }));
}

interface ClosedRow {
  readonly accountId: string;
  readonly rid: string;
  readonly kind: EntryKind;
  readonly keyId: string | null;
  readonly amount: string;
  readonly shortfall: string;
}

/**
 * Reads the entries so recent that an operation on their reservation may still be repeated. For a very busy account it reads only the last
 * ones. It skips reports of allowances, because a report's id is no reservation. If a reported call is settled again, the spool looks it up
 * in Postgres.
 */
async function readClosed(trx: Knex, accountIds: string): Promise<readonly ClosedRow[]> {
  const { rows } = await trx.raw<{ rows: ClosedRow[] }>(
    `SELECT entry.account_id::text AS "accountId", entry.rid::text, entry.kind, entry.key_id::text AS "keyId",
            entry.amount_e8::text AS amount, entry.shortfall_e8::text AS shortfall
     FROM jsonb_array_elements_text(:accountIds::jsonb) AS account
     JOIN ledger_accounts AS chain ON chain.account_id = account.value::uuid
     JOIN ledger_entries AS entry ON entry.account_id = chain.account_id AND entry.seq > chain.seq - ${MAX_CLOSED}
     WHERE entry.written_at > now() - interval '${CLOSED_MS} milliseconds' AND entry.calls IS NULL`,
    { accountIds },
  );
  return rows;
}

interface IntentRow extends ClosedRow {
  /** Whether the report of an allowance (money that a node holds in advance) charged for the call. No entry then has the call's reservation. */
  readonly isReported: boolean;
  readonly requestId: string;
  readonly key: string;
  readonly body: string;
}

/**
 * Reads the Idempotency-Keys of charged calls. It searches records by the time when the call began, so it misses calls longer than
 * MAX_CALL_MS. For a very busy account it reads only the last calls.
 */
async function readIntents(trx: Knex, accountIds: string): Promise<readonly IntentRow[]> {
  const { rows } = await trx.raw<{ rows: IntentRow[] }>(
    `SELECT account.value AS "accountId", call.rid::text AS rid, 'charge' AS kind, call.key_id::text AS "keyId",
            (-call.cost_e8)::text AS amount, '0' AS shortfall,
            call.report_id IS NOT NULL AS "isReported", call.request_id AS "requestId", call.routing -> 'intent' ->> 'key' AS key,
            call.routing -> 'intent' ->> 'body' AS body
     FROM jsonb_array_elements_text(:accountIds::jsonb) AS account
     CROSS JOIN LATERAL (
       SELECT rid, report_id, key_id, request_id, routing, cost_e8 FROM usage_records
       WHERE account_id = account.value::uuid
         AND created_at > now() - interval '${CLOSED_MS + MAX_CALL_MS} milliseconds'
       ORDER BY created_at DESC LIMIT ${2 * MAX_CLOSED}
     ) AS call
     WHERE call.rid IS NOT NULL AND call.cost_e8 > 0 AND call.routing -> 'intent' IS NOT NULL`,
    { accountIds },
  );
  return rows;
}

function toIntent({ requestId, key, body }: IntentRow): PaidIntent {
  return { key, body, requestId };
}

/**
 * Reads the holds that are still open. A hold whose closing entry exists is closed, even if the sandbox's row in Postgres does not show that
 * yet. A hold counts in the team and the member that its key has now, because its own are written nowhere.
 */
async function readStillOpen(
  trx: Knex,
  accounts: readonly AccountRow[],
  keys: ReadonlyMap<string, SetKeyRequest>,
): Promise<readonly OpenHold[]> {
  const holds = await readOpenHolds(
    trx,
    accounts.map(({ id }) => id),
  );
  if (holds.length === 0) return [];
  const { rows } = await trx.raw<{ rows: { rid: string }[] }>(
    `SELECT entry.rid::text AS rid FROM ledger_entries AS entry
     JOIN jsonb_to_recordset(:holds::jsonb) AS hold ("accountId" uuid, rid uuid)
       ON entry.account_id = hold."accountId" AND entry.rid = hold.rid`,
    { holds: JSON.stringify(holds.map(({ accountId, rid }) => ({ accountId, rid }))) },
  );
  const closed = new Set(rows.map(({ rid }) => rid));
  return holds
    .filter(({ rid }) => !closed.has(rid))
    .map((hold) => {
      const key = keys.get(hold.keyId);
      return { ...hold, scopes: key === undefined ? '' : scopesOf(key.settings) };
    });
}

function toClosed({ rid, kind, keyId, amount, shortfall }: ClosedRow): ClosedEntry {
  return { rid, kind, keyId: keyId ?? undefined, amountE8: BigInt(amount), shortfallE8: BigInt(shortfall) };
}

function groupByAccount<T extends { readonly accountId: string }>(rows: readonly T[]): ReadonlyMap<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) getOrInsert<T[]>(groups, row.accountId, () => []).push(row);
  return groups;
}

/** An open hold as its source reports it. Recovery adds the scopes of its key. */
export type ReportedHold = Omit<OpenHold, 'scopes'>;

/** Returns the open holds without a deadline on these accounts, oldest first, from the database. The caller removes holds that the ledger has closed. */
export type HoldSource = (database: Knex, accountIds: readonly string[]) => Promise<readonly ReportedHold[]>;

const sources: HoldSource[] = [];

/**
 * Registers a source of open holds without a deadline, because the ledger does not write these to the database. Each feature that takes
 * such holds (sandboxes, for their billing periods) registers a source before the stores are opened. Recovery then restores the holds.
 */
export function registerHoldSource(source: HoldSource): () => void {
  sources.push(source);
  return () => void sources.splice(sources.indexOf(source), 1);
}

async function readOpenHolds(database: Knex, accountIds: readonly string[]): Promise<readonly ReportedHold[]> {
  const holds: ReportedHold[] = [];
  for (const source of sources) holds.push(...(await source(database, accountIds)));
  return holds;
}
