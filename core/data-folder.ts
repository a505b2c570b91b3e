import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { StartFailure } from './start-failure';

/** The right to be the only process that uses a data folder. */
export interface DataFolderLock {
  release(): Promise<void>;
}

/** Who holds a lock. `startedAt` tells a process from a later one that was given the same id. */
interface Holder {
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string | undefined;
}

/** A holder on another host (another container on the same volume) is judged by when it last touched its file. */
const TOUCH_EVERY_MS = 10_000;
const SILENT_AFTER_MS = 35_000;
const TAKEOVERS = 5;

/**
 * Makes the folder if need be and locks it: the embedded database does not notice a second process and would be destroyed
 * by it. The lock of a process that is gone is taken over.
 * @throws Error that names the process holding it and what to do.
 */
export async function lockDataFolder(folder: string): Promise<DataFolderLock> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(resolve(folder), 'lock');
  const own: Holder = {
    token: randomUUID(),
    pid: process.pid,
    host: hostname(),
    startedAt: startOfProcess(process.pid),
  };
  for (let round = 0; round < TAKEOVERS; round += 1) {
    if (await createWhole(path, own)) return held(path, own);
    const holder = await readHolder(path);
    if (holder === undefined) continue;
    if (await isAlive(path, holder)) throw new StartFailure(inUse(folder, path, holder));
    await removeStale(path, holder);
  }
  throw new StartFailure(
    `The data folder ${folder} could not be locked: ${path} keeps changing. Start one process only.`,
  );
}

function inUse(folder: string, path: string, holder: Holder): string {
  const where = holder.host === hostname() ? `process ${holder.pid}` : `process ${holder.pid} on host ${holder.host}`;
  return (
    `The data folder ${folder} is in use by ${where}. The embedded database serves one process only: stop that ` +
    `process, set another DATA_DIR, or set DATABASE_URL and REDIS_URL to run several. (Lock: ${path})`
  );
}

/** Writes the file under another name first, so that nobody ever reads half of it. False when the lock exists. */
async function createWhole(path: string, own: Holder): Promise<boolean> {
  const draft = `${path}.${own.token}`;
  await writeFile(draft, JSON.stringify(own), { mode: 0o600 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

function held(path: string, own: Holder): DataFolderLock {
  const touch = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, TOUCH_EVERY_MS);
  touch.unref();
  return {
    release: async () => {
      clearInterval(touch);
      if ((await readHolder(path))?.token === own.token) await rm(path, { force: true });
    },
  };
}

/** undefined when the lock is gone. A file that is no lock of ours counts as one whose holder is gone. */
async function readHolder(path: string): Promise<Holder | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return { token: '', pid: 0, host: hostname(), startedAt: undefined };
  }
}

async function isAlive(path: string, holder: Holder): Promise<boolean> {
  if (holder.host !== hostname()) return Date.now() - (await lastTouchMs(path)) < SILENT_AFTER_MS;
  if (!(holder.pid > 0) || !exists(holder.pid)) return false;
  return holder.startedAt === startOfProcess(holder.pid);
}

async function lastTouchMs(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch {
    return 0;
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** On Linux when the process was started; elsewhere undefined, and the process id alone decides. */
function startOfProcess(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses and may hold spaces; the start time is the 22nd.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

/** Moves the file aside before it is removed: when another process was faster, it is that one's lock, and is put back. */
async function removeStale(path: string, stale: Holder): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if ((await readHolder(aside))?.token === stale.token) await rm(aside, { force: true });
  else await rename(aside, path);
}
