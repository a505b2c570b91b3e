import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { eachAtOnce } from '../../each-at-once';
import { type Ledger, type OutboxEntry, SHARDS } from '../ledger';
import { ALL_SHARDS } from '../shard';
import { continueChains } from './rebase';
import { insertEntries, insertUsage, type UsageRow, usageRowOf } from './rows';

export interface DrainOptions {
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
    super(`the ledger has gone back in time on ${accountIds.length} accounts, ${accountIds[0]} among them`);
    this.accountIds = accountIds;
  }
}

/** Shards of one transaction, and its entries: at most about 4 MB at once. Few and large ones cost the database least. */
const SHARDS_AT_ONCE = 64;
const ENTRIES_AT_ONCE = 4_096;
/** Nobody waits for it, and the ledger has calls to serve. */
const TRIMMED_AT_ONCE = 2;

/** First number of the advisory locks that let one drainer at a time work on a shard; the second is the shard. */
export const LOCK_SPACE = 0x70_6c_67;

/** Shards that have entries, with the oldest of each. One round trip. */
export function findWaiting(ledger: Ledger): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
  return ledger.readOutbox(ALL_SHARDS, 1);
}

/**
 * Moves what waits in these shards to Postgres, until they are empty or belong to another drainer at the moment. Answers
 * the shards it had to leave to another.
 */
export async function drainShards(options: DrainOptions, shards: Iterable<number>): Promise<readonly number[]> {
  const left: number[] = [];
  let todo = [...shards];
  while (todo.length > 0) {
    const group = todo.slice(0, SHARDS_AT_ONCE);
    const { full, taken } = await drainGroup(options, group);
    left.push(...taken);
    todo = [...todo.slice(SHARDS_AT_ONCE), ...full];
  }
  return left;
}

/** `full`: shards that may have more; `taken`: shards another drainer is at. */
async function drainGroup(
  options: DrainOptions,
  shards: readonly number[],
): Promise<{ full: readonly number[]; taken: readonly number[] }> {
  const perShard = Math.floor(ENTRIES_AT_ONCE / shards.length);
  const { heads, isAllNew } = await commit(options, shards, perShard);
  const some = [...heads].filter(([, entries]) => entries.length > 0);
  if (isAllNew) options.onWritten?.(some.flatMap(([, entries]) => entries.map(({ rid }) => rid)));
  // Only now: what is not committed is never forgotten. A crash in between writes the same rows again, which changes nothing.
  await eachAtOnce(some, TRIMMED_AT_ONCE, ([shard, entries]) => options.ledger.trimOutbox(shard, entries));
  return {
    full: [...heads.keys()].filter((shard) => heads.get(shard)?.length === perShard),
    taken: shards.filter((shard) => !heads.has(shard)),
  };
}

interface Committed {
  readonly heads: ReadonlyMap<number, readonly OutboxEntry[]>;
  /** Each of them has a row that it did not have before: none was left out in favour of another. */
  readonly isAllNew: boolean;
}

async function commit(options: DrainOptions, shards: readonly number[], perShard: number): Promise<Committed> {
  const { log, isRecovery = false } = options;
  const chained = (trx: Knex, entries: readonly OutboxEntry[]) =>
    isRecovery ? continueChains(trx, entries) : Promise.resolve(entries);
  try {
    return await writeLocked(options, shards, perShard, async (trx, found) => {
      const entries = await chained(trx, found);
      return write(trx, entries, entries.map(usageRowOf));
    });
  } catch (error) {
    if (!isAboutData(error)) throw error;
    log.error(
      { reason: (error as Error).message },
      'a usage record cannot be written; its batch is written one by one',
    );
    return writeLocked(options, shards, perShard, async (trx, found) =>
      writeOneByOne(trx, await chained(trx, found), log),
    );
  }
}

/**
 * One transaction for the shards nobody else is draining; answers what was read of them, once it is committed. They are read
 * under their locks: a recovery, which takes them too, then knows that nothing is on its way from a ledger that was lost.
 */
function writeLocked(
  { ledger, database }: DrainOptions,
  shards: readonly number[],
  perShard: number,
  work: (trx: Knex, entries: readonly OutboxEntry[]) => Promise<boolean>,
): Promise<Committed> {
  return database.transaction(async (trx) => {
    const locked = await lockShards(trx, shards);
    const heads = await ledger.readOutbox(locked, perShard);
    const isAllNew = heads.size > 0 && (await work(trx, [...heads.values()].flat()));
    return { heads: new Map(locked.map((shard) => [shard, heads.get(shard) ?? []])), isAllNew };
  });
}

/** Waits for whoever is draining. Nobody drains until the transaction ends. */
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
async function write(
  trx: Knex,
  entries: readonly OutboxEntry[],
  usage: readonly (UsageRow | undefined)[],
): Promise<boolean> {
  const isAllNew = await writeEntries(trx, entries);
  await insertUsage(
    trx,
    usage.filter((row) => row !== undefined),
  );
  return isAllNew;
}

async function writeEntries(trx: Knex, entries: readonly OutboxEntry[]): Promise<boolean> {
  const { newRows, steppedBack } = await insertEntries(trx, entries);
  if (steppedBack.length > 0) throw new SteppedBack(steppedBack);
  return newRows === entries.length;
}

/** A record that cannot be written must not keep money from being written: its entry goes without it, and the log says so. */
async function writeOneByOne(trx: Knex, entries: readonly OutboxEntry[], log: Logger): Promise<boolean> {
  const isAllNew = await writeEntries(trx, entries);
  for (const entry of entries) {
    const row = usageRowOf(entry);
    if (row === undefined) continue;
    try {
      await trx.transaction(async (savepoint) => insertUsage(savepoint, [row]));
    } catch (error) {
      if (!isAboutData(error)) throw error;
      const { rid, accountId } = entry;
      log.error({ rid, accountId, reason: (error as Error).message }, 'a usage record was lost: it cannot be written');
    }
  }
  return isAllNew;
}

/** Not JSON, or one of Postgres' classes of what is wrong with a value: repeating it would fail for ever. */
function isAboutData(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ABOUT_DATA.has(code.slice(0, 2));
}

/** Data, constraints, and what is too large, for an index for example. */
const ABOUT_DATA: ReadonlySet<string> = new Set(['22', '23', '54']);
