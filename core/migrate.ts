import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { StartFailure } from './start-failure';

const MIGRATIONS = join(__dirname, '..', 'migrations');

/** Any number, the same in every process: whoever migrates holds this advisory lock. */
const ADVISORY_LOCK = 7_041_776;

/** Migrations by name without extension: `.ts` when run from source, `.js` when built, the same row in the database. */
class MigrationFolder implements Knex.MigrationSource<string> {
  readonly #last: string | undefined;

  constructor(last?: string) {
    this.#last = last;
  }

  async getMigrations(): Promise<string[]> {
    const files = await readdir(MIGRATIONS);
    const names = files.flatMap((file) => /^(\d{4}-.*?)(?<!\.d)\.(?:ts|js)$/.exec(file)?.[1] ?? []).sort();
    return this.#last === undefined ? names : names.slice(0, names.indexOf(this.#last) + 1);
  }

  getMigrationName(name: string): string {
    return name;
  }

  async getMigration(name: string): Promise<Knex.Migration> {
    return require(join(MIGRATIONS, name)) as Knex.Migration;
  }
}

/**
 * Brings the database to this program's version, all or nothing, in one transaction that holds an advisory lock: nodes
 * that start at once wait for the first, and a killed one leaves nothing behind. `to` names the last migration to run, the
 * newest when it is absent.
 * @throws Error when the database is newer than this program.
 */
export async function migrate(database: Knex, { to }: { readonly to?: string } = {}): Promise<void> {
  const source = new MigrationFolder(to);
  await database.transaction(async (transaction) => {
    await transaction.raw('SET LOCAL statement_timeout = 0');
    await transaction.raw('SET LOCAL idle_in_transaction_session_timeout = 0');
    await transaction.raw('SELECT pg_advisory_xact_lock(?)', [ADVISORY_LOCK]);
    await refuseNewer(transaction, await source.getMigrations());
    await transaction.migrate.latest({ migrationSource: source });
  });
}

async function refuseNewer(transaction: Knex.Transaction, known: readonly string[]): Promise<void> {
  if (!(await transaction.schema.hasTable('knex_migrations'))) return;
  const rows = await transaction('knex_migrations').select<{ name: string }[]>('name').orderBy('id');
  const unknown = rows.map(({ name }) => name).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new StartFailure(
    `The database is at version ${unknown.at(-1)}, newer than this program, which knows up to ${known.at(-1)}. ` +
      'Start the release that last used this database or a newer one, or restore a backup from before that upgrade.',
  );
}
