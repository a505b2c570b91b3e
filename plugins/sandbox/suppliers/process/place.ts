import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the id of a data folder, and creates it on first use. Processes that share the folder get the same id. */
export async function placeOf(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'place');
  const draft = `${file}.${randomUUID()}`;
  try {
    // The draft has another name, so that no process reads half of it. If several processes create the id at once, one of them wins.
    await writeFile(draft, randomUUID(), { mode: 0o600 });
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, 'utf8');
}
