import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { StartFailure } from '../base/start-failure';

/** The right to be the only process that uses a data folder. */
export interface DataFolderLock {
  release(): Promise<void>;
}

/** The process that holds a lock. `startedAt` distinguishes it from a later process with the same id. */
interface Holder {
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly startedAt: string | undefined;
}

/** How often a holder touches its file. A holder on another host (another container on the same volume) counts as gone if its file gets too old. */
const TOUCH_EVERY_MS = 10_000;
const SILENT_AFTER_MS = 35_000;
const ROUNDS = 20;

/**
 * Creates the folder if needed and locks it, because the embedded database does not notice a second process, which would destroy
 * it. Takes over the lock of a process that is gone.
 * @throws StartFailure that names the process holding it and what to do.
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
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = await readHolder(path);
    const done = first === undefined ? await createWhole(path, own) : await succeed(folder, path, first, own);
    if (done) return held(path, own);
  }
  throw new StartFailure(
    `The data folder ${folder} could not be locked: ${path} keeps changing. Start one process only.`,
  );
}

/**
 * Takes over the lock of a process that is gone. The successor creates a file named after the holder's token, which only one process can
 * do. If a successor died before it finished, another process succeeds it in the same way. In the end the successor's file replaces the
 * lock. If another process replaced the lock meanwhile, the successor removes its own file.
 * @returns false when another process was faster.
 * @throws StartFailure when the lock is held
 */
async function succeed(folder: string, path: string, first: Holder, own: Holder): Promise<boolean> {
  // A process that was killed while it wrote its lock file has left the draft of that file.
  const leftOver = [draftOf(path, first)];
  let last = first;
  let at = path;
  for (;;) {
    const next = `${path}.after-${last.token}`;
    const follower = await readHolder(next);
    if (follower === undefined) break;
    leftOver.push(next, draftOf(next, follower));
    last = follower;
    at = next;
  }
  if (await isAlive(at, last)) throw new StartFailure(inUse(folder, path, last));
  const claim = `${path}.after-${last.token}`;
  if (!(await createWhole(claim, own))) return false;
  if ((await readHolder(path))?.token !== first.token) {
    await rm(claim, { force: true });
    return false;
  }
  await rename(claim, path);
  for (const file of leftOver) await rm(file, { force: true });
  return true;
}

function inUse(folder: string, path: string, holder: Holder): string {
  const where = holder.host === hostname() ? `process ${holder.pid}` : `process ${holder.pid} on host ${holder.host}`;
  return (
    `The data folder ${folder} is in use by ${where}. The embedded database serves one process only: stop that ` +
    `process, set another DATA_DIR, or set DATABASE_URL and REDIS_URL to run several. (Lock: ${path})`
  );
}

function draftOf(path: string, { token }: Holder): string {
  return `${path}.${token}`;
}

/** Writes the file under another name first, so that no process ever reads half of it. Returns false when the lock exists. */
async function createWhole(path: string, own: Holder): Promise<boolean> {
  const draft = draftOf(path, own);
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

/** Returns the holder of the lock; undefined when the lock is gone. A file that is not one of our locks counts as a lock whose holder is gone. */
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

/** Returns the start time of a process on Linux. Elsewhere it returns undefined; then the process id alone tells whether the holder of a lock still runs. */
function startOfProcess(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // In `/proc/<pid>/stat` the second field is the program's name in parentheses and may hold spaces. The start time is the 22nd field.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
