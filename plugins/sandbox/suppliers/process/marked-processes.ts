import { readdir, readFile } from 'node:fs/promises';

/** Set for every command of an instance, and inherited by all it starts. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

interface Process {
  readonly pid: number;
  readonly session: number;
  readonly isMarked: boolean;
}

/**
 * The processes that carry a mark in their environment, and those of their sessions, as Linux tells. Elsewhere none are
 * found, and only the groups this process started itself are known.
 */
export async function markedProcesses(mark: string, value: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const looked = await Promise.all(pids.map((pid) => look(pid, `${mark}=${value}`)));
  const all = looked.filter((each) => each !== undefined);
  const sessions = new Set(all.filter(({ isMarked }) => isMarked).map(({ session }) => session));
  return all.filter(({ session }) => sessions.has(session)).map(({ pid }) => pid);
}

/** Undefined for a process that has ended, or belongs to somebody else. */
async function look(pid: number, wanted: string): Promise<Process | undefined> {
  try {
    const [environment, stat] = await Promise.all([
      readFile(`/proc/${pid}/environ`, 'latin1'),
      readFile(`/proc/${pid}/stat`, 'latin1'),
    ]);
    // The name before it may hold blanks and brackets.
    const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    return { pid, session: Number(session), isMarked: environment.split('\0').includes(wanted) };
  } catch {
    return undefined;
  }
}

/** How often SIGKILL is repeated: those who die may have started others meanwhile. */
const MOST_ROUNDS = 50;

/** Signals them all; with SIGKILL until none is left. */
export async function signalMarked(mark: string, value: string, signal: NodeJS.Signals): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const pids = await markedProcesses(mark, value);
    for (const pid of pids) send(pid, signal);
    if (pids.length === 0 || signal !== 'SIGKILL') return;
  }
}

/** To a process, or with a negative number to a group; one that has just ended is no failure. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
