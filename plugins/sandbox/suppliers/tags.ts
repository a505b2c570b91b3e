import type { Knex } from 'knex';
import type { Tags } from './supplier';

/** Returns the tags that every instance of this installation has. The gateway never touches instances without them. */
export function environmentTags(environment: string): Tags {
  return { 'tollgate-environment': environment };
}

/** Returns the id that names the environment if the operator sets no name. Processes that share a database share this id. */
export async function readInstallation(database: Knex): Promise<string> {
  const [row]: { id: string }[] = await database('sandbox_installation').select('id');
  if (row === undefined) throw new Error('the table sandbox_installation is empty');
  return row.id;
}

export const SANDBOX_TAG = 'tollgate-sandbox';

export function instanceTags(environment: string, sandboxId: string): Tags {
  return { ...environmentTags(environment), [SANDBOX_TAG]: sandboxId };
}

/** Returns the name of a sandbox's instance. It never changes, so that repeating a creation finds the existing instance. */
export function instanceName(sandboxId: string): string {
  return `tg-${sandboxId}-1`;
}
