import { join } from 'node:path';
import type { Knex } from 'knex';
import { StartFailure } from '../start-failure';

/** The migrations that a database of commit 302d198 has. Their files are deleted; that commit is the oldest whose database can be taken over. */
const EARLY = [
  '2026-11-20-create-accounts',
  '2026-11-20-create-ledger-entries',
  '2026-11-21-add-key-limits',
  '2026-11-21-create-config-revisions',
  '2026-11-21-create-rollouts',
  '2026-11-21-create-sandboxes',
  '2026-11-21-create-taken-out-upstreams',
  '2026-11-21-create-users',
  '2026-11-21-keep-sandbox-commands',
  '2026-11-21-mark-entries-of-calls',
  '2026-11-21-partition-by-month',
  '2026-11-21-record-rollouts',
  '2026-11-21-record-routing',
  '2026-11-21-remember-dropped-credits',
  '2026-11-21-search-usage-records',
  '2026-11-21-show-routing',
  '2026-11-21-sign-in',
  '2026-11-21-sum-usage-records',
  '2026-11-21-tell-callers-apart',
  '2026-11-21-tell-instances-apart',
  '2026-11-21-tell-whose-instances',
  '2026-11-21-time-whole-answers',
  '2026-11-21-total-usage-records',
  '2026-11-21-watch-rollouts',
  '2026-11-21-write-sums-later',
  '2026-11-21-write-wider-indexes',
];

/** The migrations between commit 302d198 and the squash, which `migrations/before-squash` still has. */
const LATE = [
  '2026-11-22-sum-refused-calls',
  '2026-11-23-bind-identities',
  '2026-11-23-tie-ports-to-keys',
  '2026-11-23-where-sandboxes-live',
];

/** All migrations that were squashed before the first release, in the order they ran. */
export const SQUASHED: readonly string[] = [...EARLY, ...LATE];

/** The migrations that replace {@link SQUASHED}. Both build the same tables. */
const REPLACEMENTS = [
  '0001-accounts-and-keys',
  '0002-ledger-entries',
  '0003-usage-records',
  '0004-configuration-and-audit',
  '0005-users',
  '0006-taken-out-upstreams',
  '0007-rollouts',
  '0008-sandboxes',
  '0009-commands-and-ports',
];

/**
 * Takes over a database from before the squash: runs the migrations of `folder` that it lacks, then records the replacements
 * instead of the squashed migrations. Does nothing with any other database.
 * @throws StartFailure when the database is older than commit 302d198, or has a set of migrations that no version made
 */
export async function takeOver(
  transaction: Knex.Transaction,
  recorded: readonly string[],
  folder: string,
): Promise<void> {
  const old = recorded.filter((name) => SQUASHED.includes(name)).sort();
  if (old.length === 0) return;
  refuseOther(old, recorded);
  for (const name of SQUASHED.slice(old.length)) {
    const step = require(join(folder, name)) as { up(knex: Knex): Promise<void> };
    await step.up(transaction);
  }
  await transaction('knex_migrations').whereIn('name', SQUASHED).delete();
  await transaction('knex_migrations').insert(
    REPLACEMENTS.map((name) => ({ name, batch: 1, migration_time: transaction.fn.now() })),
  );
}

function refuseOther(old: readonly string[], recorded: readonly string[]): void {
  const missing = SQUASHED.slice(0, Math.max(EARLY.length, old.length)).filter((name) => !old.includes(name));
  const replacements = recorded.filter((name) => REPLACEMENTS.includes(name));
  if (missing.length === 0 && replacements.length === 0) return;
  const lacks = missing.length > 0 ? `lacks ${missing.join(', ')}` : `also has ${replacements.join(', ')}`;
  const isEarly = recorded.every((name) => EARLY.includes(name));
  throw new StartFailure(
    `The version of the database cannot be upgraded: it has ${old.length} migrations up to ${old.at(-1)}, but ${lacks}. ` +
      (isEarly
        ? 'Start commit 302d198 with it once, then this program.'
        : 'No version of Tollgate leaves a database in this state: restore a backup.'),
  );
}
