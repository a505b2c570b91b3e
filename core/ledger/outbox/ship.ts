import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { forEachConcurrent } from '../../base/for-each-concurrent';
import { errorCode } from '../../base/safe-error';
import { canCopy, NotCopyable } from '../../storage/copy-rows';
import { type Outbox, type OutboxEntry, SHARDS } from '../ledger';
import { ALL_SHARDS } from '../shard';
import { copyUsage } from './copy-usage';
import { raiseLedgerEvents } from './ledger-events';
import { continueChains } from './rebase';
import { type EntryUsage, insertEntries, insertUsage, type UsageRow, usageRowsOf } from './rows';

export interface ShipOptions {
  readonly ledger: Outbox;
  readonly database: Knex;
  readonly log: Logger;
  /**
   * Whether the ledger was restored to an older state. Postgres may then already have the sequence numbers of its new entries, so the
   * shipper appends these entries under new numbers.
   */
  readonly isRecovery?: boolean;
  /** Receives ids of reservations and credits whose entries Postgres now has. The shipper may leave some ids out. */
  onWritten?(rids: readonly string[]): void;
}

/** The error for a ledger that was restored to an older state: it reuses numbers of entries that Postgres already has. Nothing was written. */
export class SteppedBack extends Error {
  override readonly name = 'SteppedBack';
  readonly accountIds: readonly string[];

  constructor(accountIds: readonly string[]) {
    super(
      `the ledger has an older state than Postgres for ${accountIds.length} accounts, for example ${accountIds[0]}`,
    );
    this.accountIds = accountIds;
  }
}

/**
 * How many shards one transaction ships. This bounds a transaction to about 32 MB even if each entry reports 64 calls of an allowance.
 * Beyond some hundred entries, a larger batch does not lower the database's cost per entry.
 */
const SHARDS_AT_ONCE = 64;
const ENTRIES_AT_ONCE = 512;
/** How many shards' outboxes are cleared of shipped entries at once. The number is low because the ledger must serve calls meanwhile. */
const TRIMMED_AT_ONCE = 2;

/** The first number of the Postgres advisory locks that let only one shipper at a time work on a shard. The second number is the shard. */
export const LOCK_SPACE = 0x70_6c_67;

/** Returns the shards that have entries, each with its oldest entry, in one round trip to the ledger. */
export function findWaiting(ledger: Outbox): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
  return ledger.readOutbox(ALL_SHARDS, 1);
}

/** Ships the entries of these shards until their outboxes are empty. Returns the shards that it skipped because another shipper works on them. */
export async function shipShards(options: ShipOptions, shards: Iterable<number>): Promise<readonly number[]> {
  const left: number[] = [];
  let todo = [...shards];
  while (todo.length > 0) {
    const group = todo.slice(0, SHARDS_AT_ONCE);
    const { full, taken } = await shipGroup(options, group);
    left.push(...taken);
    todo = [...todo.slice(SHARDS_AT_ONCE), ...full];
  }
  return left;
}

/**
 * Ships one batch of entries of these shards. Returns `full`, the shards that may have more entries. Also returns `taken`, the shards that
 * this call skipped because another shipper works on them.
 */
async function shipGroup(
  options: ShipOptions,
  shards: readonly number[],
): Promise<{ full: readonly number[]; taken: readonly number[] }> {
  const perShard = Math.floor(ENTRIES_AT_ONCE / shards.length);
  const { heads, isAllNew } = await commit(options, shards, perShard);
  const some = [...heads].filter(([, entries]) => entries.length > 0);
  if (isAllNew) options.onWritten?.(some.flatMap(([, entries]) => entries.flatMap(ridsOf)));
  // The shipper trims entries only after the commit, because the ledger must not forget an uncommitted entry. After a crash in between, a shipper
  // writes the same rows again, which changes nothing.
  await forEachConcurrent(some, TRIMMED_AT_ONCE, ([shard, entries]) => options.ledger.trimOutbox(shard, entries));
  return {
    full: [...heads.keys()].filter((shard) => heads.get(shard)?.length === perShard),
    taken: shards.filter((shard) => !heads.has(shard)),
  };
}

/** Returns the id of an entry's reservation and, for a report, the ids of the calls that it charges for. */
function ridsOf({ rid, calls = [] }: OutboxEntry): readonly string[] {
  return [rid, ...calls.map((call) => call.rid)];
}

interface Committed {
  readonly heads: ReadonlyMap<number, readonly OutboxEntry[]>;
  /** Whether every entry became a new row; false if Postgres already had a row for one of them. */
  readonly isAllNew: boolean;
}

function commit(options: ShipOptions, shards: readonly number[], perShard: number): Promise<Committed> {
  const { log, isRecovery = false } = options;
  return writeLocked(options, shards, perShard, async (trx, found) => {
    const entries = isRecovery ? await continueChains(trx, found) : found;
    const isAllNew = await writeEntries(trx, entries);
    const usage = entries.flatMap(usageRowsOf);
    if (!isAllNew || !canCopy(trx) || !(await areCopied(trx, usage, log))) await insertSaving(trx, usage, log);
    await raiseLedgerEvents(trx, entries);
    return isAllNew;
  });
}

/**
 * Locks those of the shards that no other process is shipping, and reads their entries in one transaction. Runs `work` in that transaction,
 * and returns the entries after the commit. A recovery takes the same locks, so it knows that no process is still shipping entries of a
 * lost ledger.
 */
function writeLocked(
  { ledger, database }: ShipOptions,
  shards: readonly number[],
  perShard: number,
  work: (trx: Knex.Transaction, entries: readonly OutboxEntry[]) => Promise<boolean>,
): Promise<Committed> {
  return database.transaction(async (trx) => {
    const locked = await lockShards(trx, shards);
    const heads = await ledger.readOutbox(locked, perShard);
    const isAllNew = heads.size > 0 && (await work(trx, [...heads.values()].flat()));
    return { heads: new Map(locked.map((shard) => [shard, heads.get(shard) ?? []])), isAllNew };
  });
}

/** Waits until no process ships any shard, and prevents shipping until the transaction ends. */
export async function lockAllShards(trx: Knex): Promise<void> {
  await trx.raw(`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, shard) FROM generate_series(0, ${SHARDS - 1}) AS shard`);
}

async function lockShards(trx: Knex, shards: readonly number[]): Promise<readonly number[]> {
  const { rows } = await trx.raw<{ rows: { shard: number }[] }>(
    `SELECT shard FROM (SELECT value::int AS shard FROM jsonb_array_elements_text(:shards::jsonb)) AS wanted
     WHERE pg_try_advisory_xact_lock(${LOCK_SPACE}, shard)`,
    { shards: JSON.stringify(shards) },
  );
  return rows.map(({ shard }) => shard);
}

/**
 * Writes entries. Returns true if all of them are new.
 * @throws SteppedBack if the ledger has gone back in time
 */
async function writeEntries(trx: Knex, entries: readonly OutboxEntry[]): Promise<boolean> {
  const { newRows, steppedBack } = await insertEntries(trx, entries);
  if (steppedBack.length > 0) throw new SteppedBack(steppedBack);
  return newRows === entries.length;
}

/**
 * Copies the usage records of new entries into Postgres. These records are new, too, unless Postgres already has one for a refused call. If
 * a record cannot be copied, this function writes none and returns false.
 */
async function areCopied(trx: Knex.Transaction, usage: readonly UsageRow[], log: Logger): Promise<boolean> {
  try {
    await trx.transaction((savepoint) => copyUsage(savepoint, usage));
    return true;
  } catch (error) {
    if (!isAboutData(error)) throw error;
    log.warn(
      { reason: (error as Error).message },
      'usage records could not be written with COPY; they are written with INSERT instead',
    );
    return false;
  }
}

/**
 * Inserts all usage records except those that Postgres rejects, which it finds by halving the batch. One bad record must not prevent the
 * writing of charges and other records. The log names the rejected records.
 */
async function insertSaving(trx: Knex.Transaction, usage: readonly EntryUsage[], log: Logger): Promise<void> {
  const [first] = usage;
  if (first === undefined) return;
  try {
    await trx.transaction((savepoint) => insertUsage(savepoint, usage));
  } catch (error) {
    if (!isAboutData(error)) throw error;
    if (usage.length > 1) {
      const middle = Math.ceil(usage.length / 2);
      await insertSaving(trx, usage.slice(0, middle), log);
      return insertSaving(trx, usage.slice(middle), log);
    }
    const { rid, reportId, accountId } = first;
    const lost = { rid, reportId, accountId, reason: (error as Error).message };
    log.error(lost, 'a usage record was lost because Postgres rejects it');
  }
}

/** Returns whether Postgres rejected a value, so that every retry would fail. */
function isAboutData(error: unknown): boolean {
  return error instanceof NotCopyable || ABOUT_DATA.has(errorCode(error).slice(0, 2));
}

/** Postgres' classes of errors about invalid data, violated constraints, and exceeded limits such as the size of an index entry. */
const ABOUT_DATA: ReadonlySet<string> = new Set(['22', '23', '54']);
