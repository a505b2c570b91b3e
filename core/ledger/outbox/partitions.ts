import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { withoutTimeLimit } from '../../storage/silent-connections';

interface PartitionsOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** How many whole months before the current one usage records and upstream attempts are kept; undefined keeps all. */
  readonly usageMonths?: number | undefined;
  /** How many whole months before the current one ledger entries are kept; undefined keeps all. One checkpoint per account replaces dropped entries. */
  readonly entryMonths?: number | undefined;
}

const TABLES = ['ledger_entries', 'usage_records', 'upstream_attempts'] as const;
type Table = (typeof TABLES)[number];

/** How many months in advance partitions are created, so that no process needs to run on the first day of a month. */
const MONTHS_AHEAD = 2;

/** The Postgres advisory lock of the partition task; the number is arbitrary. If several processes run the task at the same time, they wait for each other. */
const LOCK = 0x70_6c_69;

/**
 * Creates the partitions of this month and the next ones, and drops those older than the retention. Any number of processes may repeat it.
 * Returns the names of the partitions that it created and dropped.
 */
export async function keepPartitions(options: PartitionsOptions, now = new Date()): Promise<readonly string[]> {
  const { database, log, usageMonths, entryMonths } = options;
  const changed = await withoutTimeLimit(database, async (trx) => {
    await trx.raw('SELECT pg_advisory_xact_lock(?::bigint)', [LOCK]);
    const done: string[] = [];
    for (const table of TABLES) {
      for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) done.push(...(await createMonth(trx, table, now, ahead)));
    }
    for (const table of TABLES) {
      const months = table === 'ledger_entries' ? entryMonths : usageMonths;
      for (const partition of await olderThan(trx, table, now, months)) {
        if (table === 'ledger_entries') {
          await writeCheckpoints(trx, partition);
          await rememberCredits(trx, partition);
        }
        await trx.schema.dropTable(partition);
        if (table === 'usage_records') await dropSums(trx, partition);
        done.push(partition);
      }
    }
    return done;
  });
  if (changed.length > 0) log.info({ partitions: changed }, 'partitions of database tables were created or dropped');
  return changed;
}

/** Returns the time before which at least one table may lack rows because partitions were dropped; undefined if none was ever dropped. */
export async function droppedBefore(database: Knex): Promise<Date | undefined> {
  const starts: number[] = [];
  for (const table of TABLES) {
    const [oldest] = byMonth((await partitionsOf(database, table)).map(({ name }) => name));
    if (oldest?.startsWith(`${table}_to_`) === false)
      starts.push(Date.parse(`${oldest.slice(-7).replace('_', '-')}-01`));
  }
  return starts.length === 0 ? undefined : new Date(Math.max(...starts));
}

/**
 * Creates the partition of a month, and moves the month's rows there from the default partition. The default partition has rows only if no
 * process created partitions for months.
 */
async function createMonth(trx: Knex, table: Table, now: Date, ahead: number): Promise<readonly string[]> {
  const start = monthStart(now, ahead);
  const partition = `${table}_${suffixOf(start)}`;
  const names = (await partitionsOf(trx, table)).map(({ name }) => name);
  const first = names.find((name) => name.startsWith(`${table}_to_`));
  if (names.includes(partition) || (first !== undefined && suffixOf(start) <= first.slice(-7))) return [];
  const range = { from: start.toISOString(), to: monthStart(now, ahead + 1).toISOString() };
  await trx.raw(`CREATE TABLE ${partition} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  await trx.raw(
    `WITH moved AS (DELETE FROM ${table}_other WHERE created_at >= :from AND created_at < :to RETURNING *)
     INSERT INTO ${partition} SELECT * FROM moved`,
    range,
  );
  await trx.raw(
    `ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES FROM ('${range.from}') TO ('${range.to}')`,
  );
  return [partition];
}

/** Returns the partitions older than the retention, oldest first. */
async function olderThan(trx: Knex, table: Table, now: Date, months: number | undefined): Promise<readonly string[]> {
  if (months === undefined) return [];
  const oldestKept = suffixOf(monthStart(now, -months));
  return byMonth((await partitionsOf(trx, table)).map(({ name }) => name)).filter(
    (name) => name.slice(-7) < oldestKept,
  );
}

/** Returns the partition names that end in a month, oldest first. */
function byMonth(names: readonly string[]): readonly string[] {
  return names
    .filter((name) => /_\d{4}_\d{2}$/.test(name))
    .sort((one, other) => (one.slice(-7) < other.slice(-7) ? -1 : 1));
}

/** Deletes the hourly usage sums of dropped records. For the first partition, which has no lower bound, it deletes all earlier sums. */
async function dropSums(trx: Knex, partition: string): Promise<void> {
  const month = `${partition.slice(-7).replace('_', '-')}-01`;
  const from = partition.startsWith('usage_records_to_') ? '-infinity' : month;
  await trx.raw(
    `DELETE FROM usage_sums WHERE hour >= :from::timestamp AT TIME ZONE 'UTC'
     AND hour < (:month::timestamp + interval '1 month') AT TIME ZONE 'UTC'`,
    { from, month },
  );
}

/** Writes a checkpoint for each account of a partition that will be dropped: where the account's sequence of entries continues after that partition. */
async function writeCheckpoints(trx: Knex, partition: string): Promise<void> {
  await trx.raw(
    `INSERT INTO ledger_checkpoints (account_id, seq, posted_e8)
     SELECT DISTINCT ON (account_id) account_id, seq, posted_e8 FROM ${partition} ORDER BY account_id, seq DESC
     ON CONFLICT DO NOTHING`,
  );
}

/** Marks the credits of dropped entries as booked, because the gateway would send a credit without an entry to the ledger again. */
async function rememberCredits(trx: Knex, partition: string): Promise<void> {
  await trx.raw(
    `UPDATE credits SET dropped_posted_e8 = entry.posted_e8 FROM ${partition} AS entry
     WHERE entry.kind = 'credit' AND entry.account_id = credits.account_id AND entry.rid = credits.id`,
  );
}

async function partitionsOf(trx: Knex, table: Table): Promise<readonly { readonly name: string }[]> {
  const { rows } = await trx.raw<{ rows: { name: string }[] }>(
    'SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ?::regclass ORDER BY 1',
    [table],
  );
  return rows;
}

function monthStart(now: Date, ahead: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1));
}

/** Returns a month as `2026_11`. */
function suffixOf(month: Date): string {
  return month.toISOString().slice(0, 7).replace('-', '_');
}
