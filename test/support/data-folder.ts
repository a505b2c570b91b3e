import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../preparation/run';
import { endInstances } from './instances';
import { emptyDataFolder } from './shared';

const made: string[] = [];

/** Makes a data folder for one gateway. It exists until all tests have ended, so that a gateway can start again. */
export async function newDataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-data-'));
  made.push(folder);
  return folder;
}

/** Makes a data folder with an empty embedded database. Creating one at the first start takes seconds; the test of the quick start covers that. */
export async function newEmbeddedFolder(): Promise<string> {
  const folder = await newDataFolder();
  await cp(await emptyDataFolder(), folder, { recursive: true });
  return folder;
}

/** Keeps a folder when the folders of a test file are removed, because its gateway serves further files. */
export function keepDataFolder(folder: string): void {
  const at = made.indexOf(folder);
  if (at !== -1) made.splice(at, 1);
}

/** Lets a folder of another process be removed with those of this one. */
export function adoptDataFolder(folder: string): void {
  made.push(folder);
}

export async function removeDataFolders(): Promise<void> {
  const remove = async (folder: string) => {
    await endInstances(folder);
    await rm(folder, { recursive: true, force: true });
  };
  await Promise.all(made.splice(0).map(remove));
}

/** Makes an empty embedded database of this version. A separate process does it, because the database blocks its process for seconds. */
export async function prepareDataFolder(): Promise<string> {
  const dataFolder = await newDataFolder();
  const script = join(__dirname, 'make-data-folder.ts');
  await run(process.execPath, ['--require', 'tsx/cjs', script, dataFolder], { report: () => {} });
  return dataFolder;
}
