import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, openDatabase } from '../../core/database';
import { quiet } from './databases';
import { emptyDataFolder } from './shared';

const made: string[] = [];

/** Makes a data folder for one gateway. It is there until all tests have ended, for gateways that are started again. */
export async function newDataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-data-'));
  made.push(folder);
  return folder;
}

/** Makes one with an empty embedded database, whose first start takes seconds; the test of the quick start tells that story. */
export async function newEmbeddedFolder(): Promise<string> {
  const folder = await newDataFolder();
  await cp(await emptyDataFolder(), folder, { recursive: true });
  return folder;
}

export async function removeDataFolders(): Promise<void> {
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
}

/** With an embedded database of this version that has nothing in it. */
export async function prepareDataFolder(): Promise<string> {
  const dataFolder = await newDataFolder();
  const database = await openDatabase({ dataFolder, log: quiet });
  await migrate(database);
  await database.destroy();
  return dataFolder;
}
