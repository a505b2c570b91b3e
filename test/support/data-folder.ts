import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, openDatabase } from '../../core/database';
import { quiet } from './databases';
import { endInstances } from './instances';
import { emptyDataFolder } from './shared';

const made: string[] = [];

/** A data folder for one gateway; it is there until all tests have ended, for gateways that are started again. */
export async function newDataFolder(stores: unknown): Promise<string> {
  const folder = await makeFolder();
  // The first start of an embedded database takes seconds; the quick start's test tells that story.
  if (stores === 'embedded') await cp(await emptyDataFolder(), folder, { recursive: true });
  return folder;
}

export async function removeDataFolders(): Promise<void> {
  const remove = async (folder: string) => {
    await endInstances(folder);
    await rm(folder, { recursive: true, force: true });
  };
  await Promise.all(made.splice(0).map(remove));
}

/** With an embedded database of this version that has nothing in it. */
export async function prepareDataFolder(): Promise<string> {
  const dataFolder = await makeFolder();
  const database = await openDatabase({ dataFolder, log: quiet });
  await migrate(database);
  await database.destroy();
  return dataFolder;
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-data-'));
  made.push(folder);
  return folder;
}
