import type { Knex } from 'knex';
import type { OpenHold } from './ledger';

/**
 * Returns the holds without a deadline that the database has as open on these accounts, oldest first. The caller removes holds
 * that already have an entry of the ledger.
 */
export type HoldSource = (database: Knex, accountIds: readonly string[]) => Promise<readonly OpenHold[]>;

const sources: HoldSource[] = [];

/**
 * Registers a source of open holds without a deadline, because the ledger does not write these to the database. Each feature that
 * takes them (sandboxes, for their billing periods) lists its open holds here, so that recovery can restore them. It registers
 * before the stores are opened.
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
