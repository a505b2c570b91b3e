import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../preparation/run';
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
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
}

/**
 * Makes an embedded database of this version with nothing in it. A process of its own does it, because the embedded database
 * blocks its process for seconds while it starts.
 */
export async function prepareDataFolder(): Promise<string> {
  const dataFolder = await makeFolder();
  const script = join(__dirname, 'make-data-folder.ts');
  await run(process.execPath, ['--require', 'tsx/cjs', script, dataFolder], { report: () => {} });
  return dataFolder;
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-data-'));
  made.push(folder);
  return folder;
}
