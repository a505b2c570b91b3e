import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { eachAtOnce } from '../../each-at-once';
import { canCopy } from '../../storage/copy';
import { NotCopyable } from '../../storage/copy-rows';
import { type Ledger, type OutboxEntry, SHARDS } from '../ledger';
import { ALL_SHARDS } from '../shard';
import { copyUsage } from './copy-usage';
import { continueChains } from './rebase';
import { type EntryUsage, insertEntries, insertUsage, type UsageRow, usageRowsOf } from './rows';

export interface ShipOptions {
  readonly ledger: Ledger;
  readonly database: Knex;
  readonly log: Logger;
  /** Recovery: entries that are numbered as others of Postgres are, because the ledger went back in time, continue the chain. */
  readonly isRecovery?: boolean;
  /** What Postgres has by now, by the ids of reservations and credits; not all of it is told. */
  onWritten?(rids: readonly string[]): void;
}

/** The ledger went back in time: it numbers an entry as Postgres has numbered another. Nothing was written. */
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
 * Shards of one transaction, and its entries: about 32 MB at once if each is a report of 64 calls. A batch of more than some hundred
 * entries costs the database no less for each.
 */
const SHARDS_AT_ONCE = 64;
const ENTRIES_AT_ONCE = 512;
/** Nobody waits for it, and the ledger has calls to serve. */
const TRIMMED_AT_ONCE = 2;

/** First number of the advisory locks that let one shipper at a time work on a shard; the second is the shard. */
export const LOCK_SPACE = 0x70_6c_67;

/** Shards that have entries, with the oldest of each. One round trip. */
export function findWaiting(ledger: Ledger): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
  return ledger.readOutbox(ALL_SHARDS, 1);
}

/**
 * Moves what waits in these shards to Postgres, until they are empty or belong to another shipper at the moment. Answers
 * the shards it had to leave to another.
 */
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

/** `full`: shards that may have more; `taken`: shards another shipper is at. */
async function shipGroup(
  options: ShipOptions,
  shards: readonly number[],
): Promise<{ full: readonly number[]; taken: readonly number[] }> {
  const perShard = Math.floor(ENTRIES_AT_ONCE / shards.length);
  const { heads, isAllNew } = await commit(options, shards, perShard);
  const some = [...heads].filter(([, entries]) => entries.length > 0);
  if (isAllNew) options.onWritten?.(some.flatMap(([, entries]) => entries.flatMap(ridsOf)));
  // Only now: what is not committed is never forgotten. A crash in between writes the same rows again, which changes nothing.
  await eachAtOnce(some, TRIMMED_AT_ONCE, ([shard, entries]) => options.ledger.trimOutbox(shard, entries));
  return {
    full: [...heads.keys()].filter((shard) => heads.get(shard)?.length === perShard),
    taken: shards.filter((shard) => !heads.has(shard)),
  };
}

/** A report has its own id, and those of the calls it charges for. */
function ridsOf({ rid, calls = [] }: OutboxEntry): readonly string[] {
  return [rid, ...calls.map((call) => call.rid)];
}

interface Committed {
  readonly heads: ReadonlyMap<number, readonly OutboxEntry[]>;
  /** Each of them has a row that it did not have before: none was left out in favour of another. */
  readonly isAllNew: boolean;
}

function commit(options: ShipOptions, shards: readonly number[], perShard: number): Promise<Committed> {
  const { log, isRecovery = false } = options;
  return writeLocked(options, shards, perShard, async (trx, found) => {
    const entries = isRecovery ? await continueChains(trx, found) : found;
    const isAllNew = await writeEntries(trx, entries);
    const usage = entries.flatMap(usageRowsOf);
    if (!isAllNew || !canCopy(trx) || !(await areCopied(trx, usage, log))) await insertSaving(trx, usage, log);
    return isAllNew;
  });
}

/**
 * One transaction for the shards no other process is shipping; answers what was read of them, once it is committed. They are read
 * under their locks: a recovery, which takes them too, then knows that nothing is on its way from a ledger that was lost.
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

/** Waits until no process ships these shards, and keeps others from it until the transaction ends. */
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

/** True when all entries are new. */
async function writeEntries(trx: Knex, entries: readonly OutboxEntry[]): Promise<boolean> {
  const { newRows, steppedBack } = await insertEntries(trx, entries);
  if (steppedBack.length > 0) throw new SteppedBack(steppedBack);
  return newRows === entries.length;
}

/**
 * Copies records whose entries are new: they are new themselves, unless a call that was refused has one already. Returns false if
 * that failed because of a record, and none is written.
 */
async function areCopied(trx: Knex.Transaction, usage: readonly UsageRow[], log: Logger): Promise<boolean> {
  try {
    await trx.transaction((savepoint) => copyUsage(savepoint, usage));
    return true;
  } catch (error) {
    if (!isAboutData(error)) throw error;
    log.warn(
      { reason: (error as Error).message },
      'usage records cannot be written by COPY; they are inserted instead',
    );
    return false;
  }
}

/**
 * Inserts all records but those that cannot be written, which it finds by halves: they must not keep money and other records from
 * being written. The log says which were lost.
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

/** One of Postgres' classes of what is wrong with a value: repeating it would fail for ever. */
function isAboutData(error: unknown): boolean {
  if (error instanceof NotCopyable) return true;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ABOUT_DATA.has(code.slice(0, 2));
}

/** Data, constraints, and what is too large, for an index for example. */
const ABOUT_DATA: ReadonlySet<string> = new Set(['22', '23', '54']);
