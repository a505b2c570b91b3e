import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { type Logger, pino } from 'pino';
import { openDatabase } from '../../core/storage/database';
import { newEmbeddedFolder } from './data-folder';
import { newDatabase } from './shared';

export const quiet: Logger = pino({ level: 'silent' });

export interface TestDatabase {
  readonly database: Knex;
  close(): Promise<void>;
}

/** Makes a temporary folder; `remove` deletes it. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Both supported databases, migrated and empty. Every test must pass on both. */
export const DATABASES: readonly { readonly name: string; open(): Promise<TestDatabase> }[] = [
  {
    name: 'Postgres',
    open: async () => {
      const database = await openDatabase({ databaseUrl: await newDatabase(), dataFolder: '', log: quiet });
      return { database, close: () => database.destroy() };
    },
  },
  {
    name: 'PGlite',
    open: async () => {
      const database = await openDatabase({ dataFolder: await newEmbeddedFolder(), log: quiet });
      return { database, close: () => database.destroy() };
    },
  },
];
