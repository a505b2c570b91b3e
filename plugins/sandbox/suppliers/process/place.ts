import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the id of a data folder, which is made with the folder. Processes that share the folder have the same one. */
export async function placeOf(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'place');
  const draft = `${file}.${randomUUID()}`;
  try {
    // Written under another name first: no process reads half of it, and of several that make it at once one does.
    await writeFile(draft, randomUUID(), { mode: 0o600 });
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, 'utf8');
}
