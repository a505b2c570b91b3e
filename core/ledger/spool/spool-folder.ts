import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../ids';
import { StartFailure } from '../../start-failure';
import { type DataFolderLock, lockDataFolder } from '../../storage/data-folder';
import { FileOnDisk, type SpoolFile } from './spool-file';

/** Where processes keep their closings. */
export interface SpoolFolder {
  /** Files of processes that are gone: they are this one's from now on. */
  readonly left: readonly SpoolFile[];
  create(): SpoolFile;
  /** What has files waits for the next process that uses the folder. */
  close(): Promise<void>;
}

/** Processes may share it: each has a folder of its own in it, and takes over those of processes that are gone. */
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

/** A process that starts at the same moment may take a new folder for one that was left, and lock it first: another is made. */
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
