import type { Knex } from 'knex';
import type { OpenHold } from './ledger';

/**
 * Answers the holds without a deadline that these accounts have open, oldest first, as the database knows them. Holds that
 * have an entry of the ledger are left out by who asks.
 */
export type HoldSource = (database: Knex, accountIds: readonly string[]) => Promise<readonly OpenHold[]>;

const sources: HoldSource[] = [];

/**
 * Holds without a deadline are not written to the database by the ledger. Whoever takes them (sandboxes, for their billing
 * periods) names here what is open, so that a ledger that was lost gets them back. Registered before the stores are opened.
 */
export function registerHoldSource(source: HoldSource): () => void {
  sources.push(source);
  return () => void sources.splice(sources.indexOf(source), 1);
}

export async function readOpenHolds(database: Knex, accountIds: readonly string[]): Promise<readonly OpenHold[]> {
  const holds: OpenHold[] = [];
  for (const source of sources) holds.push(...(await source(database, accountIds)));
  return holds;
}
