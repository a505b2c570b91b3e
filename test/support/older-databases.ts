import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { Client } from 'pg';
import { newEmbeddedFolder } from './data-folder';
import { bareDatabase } from './shared';
import { textOf } from './sources';
import { newStores, type Stores } from './stores';

/** A database that an earlier version wrote; test/fixtures/upgrade/README.md describes how. */
export interface OlderDatabase {
  readonly name: string;
  readonly dump: string;
  /** The balances that the gateway of that version showed, by account. */
  readonly balancesUsd: Readonly<Record<string, string>>;
}

export const OF_302D198: OlderDatabase = {
  name: 'commit 302d198',
  dump: 'test/fixtures/upgrade/302d198.sql',
  balancesUsd: {
    '01a20849-c20d-724e-b220-40031ba1beb5': '12.47881000',
    '01a20849-c291-763d-bc7a-ff4050729725': '2.98779000',
    '01a20849-c2bd-737c-8938-60dc3e40dc6c': '0.00000001',
  },
};

export const BEFORE_SQUASH: OlderDatabase = {
  name: 'the last version before the squash',
  dump: 'test/fixtures/upgrade/before-squash.sql',
  balancesUsd: {
    '01a2084a-0bcb-728f-9eeb-54feb74fea55': '12.47895100',
    '01a2084a-0c02-7342-92c0-25a48d8f2836': '2.98779000',
    '01a2084a-0c32-7092-ac0d-d31adb91f8f3': '0.00000001',
  },
};

/** Restores the database in the shared Postgres and returns its URL. */
export async function restorePostgres({ dump }: OlderDatabase): Promise<string> {
  const databaseUrl = await bareDatabase();
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(textOf(dump));
  await client.end();
  return databaseUrl;
}

/** Restores the database in an embedded one and returns its data folder. */
export async function restoreEmbedded({ dump }: OlderDatabase): Promise<string> {
  const dataFolder = await newEmbeddedFolder();
  const pglite = new PGlite(join(dataFolder, 'database'));
  await pglite.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  await pglite.exec(textOf(dump));
  await pglite.close();
  return dataFolder;
}

/** Restores the database in stores of the kind that STORES names, for a gateway that starts with an empty ledger. */
export async function restoreStores(older: OlderDatabase): Promise<Stores> {
  const stores = await newStores();
  if ('dataFolder' in stores) return { dataFolder: await restoreEmbedded(older) };
  return { ...stores, databaseUrl: await restorePostgres(older) };
}
