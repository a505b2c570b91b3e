import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../base/ids';
import { StartFailure } from '../../base/start-failure';
import { type DataFolderLock, lockDataFolder } from '../../storage/data-folder';
import { FileOnDisk, type SpoolFile } from './spool-file';

/** The folder where processes keep their spool files. */
export interface SpoolFolder {
  /** The files of stopped processes, which this process takes over. */
  readonly left: readonly SpoolFile[];
  create(): SpoolFile;
  /** Releases the folder. Its files that still have lines wait for the next process that opens the folder. */
  close(): Promise<void>;
}

/** Opens a folder that several processes may share. Each process has its own subfolder, and takes over the subfolders of stopped processes. */
export async function openSpoolFolder(path: string): Promise<SpoolFolder> {
  const [home, lock] = await makeHome(path);
  const locks = new Map<string, DataFolderLock>([[home, lock]]);
  const left: SpoolFile[] = [];
  let count = 0;
  for (const name of await readdir(path)) {
    const other = join(path, name);
    if (locks.has(other)) continue;
    try {
      locks.set(other, await lockDataFolder(other));
    } catch (error) {
      if (error instanceof StartFailure) continue; // Its process is alive.
      throw error;
    }
    for (const file of await spoolFilesIn(other)) left.push(await FileOnDisk.read(join(other, file)));
  }
  return {
    left,
    create: () => FileOnDisk.create(join(home, `${count++}.spool`)),
    close: async () => {
      for (const [folder, lock] of locks) {
        await lock.release();
        if ((await spoolFilesIn(folder)).length === 0) await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

/**
 * Creates and locks a subfolder for this process. Another starting process may take the new subfolder for an abandoned one and lock it
 * first. In that case, this function creates another subfolder.
 */
async function makeHome(path: string): Promise<readonly [string, DataFolderLock]> {
  const home = join(path, newId());
  try {
    return [home, await lockDataFolder(home)];
  } catch (error) {
    if (error instanceof StartFailure) return makeHome(path);
    throw error;
  }
}

async function spoolFilesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((each) => each.endsWith('.spool'));
}
