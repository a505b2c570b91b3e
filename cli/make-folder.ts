import { mkdir } from 'node:fs/promises';
import { Failure } from './failure';

/** Creates a folder. @throws Failure if it exists or cannot be created */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'already exists: choose another name' : `cannot be created (${code})`;
    throw new Failure(`${folder} ${why}.`, { cause });
  }
}
