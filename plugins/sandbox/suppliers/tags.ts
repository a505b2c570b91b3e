import type { Knex } from 'knex';
import type { Tags } from './supplier';

/** Every instance of this installation carries it; instances of others are never touched. */
export function environmentTags(environment: string): Tags {
  return { 'tollgate-environment': environment };
}

/** What is an environment of its own where none is named: all that share a database. */
export async function readInstallation(database: Knex): Promise<string> {
  const [row]: { id: string }[] = await database('sandbox_installation').select('id');
  if (row === undefined) throw new Error('the table sandbox_installation is empty');
  return row.id;
}

export const SANDBOX_TAG = 'tollgate-sandbox';

export function instanceTags(environment: string, sandboxId: string): Tags {
  return { ...environmentTags(environment), [SANDBOX_TAG]: sandboxId };
}

/** The same for ever: creating under it again finds what is there. */
export function instanceName(sandboxId: string): string {
  return `tg-${sandboxId}-1`;
}
