import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { StartFailure } from '../base/start-failure';
import { withoutTimeLimit } from './silent-connections';

const MIGRATIONS = join(__dirname, '../../migrations');

/** The number of the advisory lock that a migrating process holds. Any number works if all processes use the same. */
const ADVISORY_LOCK = 7_041_776;

/** The migrations by name without extension: `.ts` from source, `.js` when built, so that both have the same row in the database. */
const source: Knex.MigrationSource<string> = {
  getMigrations: namesInFolder,
  getMigrationName: (name) => name,
  getMigration: async (name) => ({ down: refuseDown, ...require(join(MIGRATIONS, name)) }),
};

async function namesInFolder(): Promise<string[]> {
  const files = await readdir(MIGRATIONS);
  return files.flatMap((file) => /^(\d{4}-[a-z].*?)(?<!\.d)\.(?:ts|js)$/.exec(file)?.[1] ?? []).sort();
}

/** Refuses to undo a migration. knex requires this function. To undo an upgrade, an operator restores a backup. */
async function refuseDown(): Promise<void> {
  throw new Error('migrations cannot be rolled back; restore a backup instead');
}

/**
 * Migrates the database to this program's version in one transaction under an advisory lock. Nodes that start at the same time
 * wait for the first. A killed node leaves nothing behind.
 * @throws StartFailure when the database is newer than this program.
 */
export async function migrate(database: Knex): Promise<void> {
  await withoutTimeLimit(database, async (transaction) => {
    await transaction.raw('SET LOCAL idle_in_transaction_session_timeout = 0');
    await transaction.raw('SELECT pg_advisory_xact_lock(?)', [ADVISORY_LOCK]);
    const [recorded, known] = [await namesInDatabase(transaction), await namesInFolder()];
    refuseNewer(recorded, known);
    // The migration is skipped when all migrations have run, because knex runs a dozen statements to find that out.
    if (recorded.length < known.length) await transaction.migrate.latest({ migrationSource: source });
  });
}

/** Returns the names of the migrations that the database has, in the order in which they ran. */
async function namesInDatabase(transaction: Knex.Transaction): Promise<readonly string[]> {
  if (!(await transaction.schema.hasTable('knex_migrations'))) return [];
  const rows = await transaction('knex_migrations').select<{ name: string }[]>('name').orderBy('id');
  return rows.map(({ name }) => name);
}

function refuseNewer(recorded: readonly string[], known: readonly string[]): void {
  const unknown = recorded.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new StartFailure(
    `The database is at version ${unknown.at(-1)}, newer than this program, which knows up to ${known.at(-1)}. ` +
      'Start the release that last used this database or a newer one, or restore a backup from before that upgrade.',
  );
}
