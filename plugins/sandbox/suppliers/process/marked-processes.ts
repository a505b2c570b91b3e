import { readdir, readFile, readlink } from 'node:fs/promises';
import { Ambiguous } from '../../../../core/supplier';

/** Set for every command of an instance, and inherited by all it starts. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

interface Process {
  readonly pid: number;
  readonly session: number;
  /** Its own processes only: as the kernel names it. */
  readonly namespace: string | undefined;
  readonly isMarked: boolean;
  /** It is what puts a command into its namespaces, with the mark among its words. */
  readonly isWrapper: boolean;
}

/**
 * The processes that carry a mark in their environment, those of their sessions, and all that is in the same namespace: who
 * has left the session and emptied the environment still is. What only wraps a command, outside of its namespace, is not
 * among them. Elsewhere than on Linux none are found, and only the groups this process started itself are known.
 */
export async function markedProcesses(mark: string, value: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const looked = await Promise.all(pids.map((pid) => look(pid, mark, value)));
  const all = looked.filter((each) => each !== undefined);
  const own = await namespaceOf('self');
  const marked = all.filter(({ isMarked }) => isMarked);
  const sessions = new Set(marked.map(({ session }) => session));
  const namespaces = new Set(
    all.filter(({ isMarked, isWrapper }) => isMarked || isWrapper).map(({ namespace }) => namespace),
  );
  namespaces.delete(own);
  namespaces.delete(undefined);
  return all
    .filter(({ session, namespace }) => sessions.has(session) || namespaces.has(namespace))
    .map(({ pid }) => pid);
}

/** Undefined for a process that has ended, or belongs to somebody else. */
async function look(pid: number, mark: string, value: string): Promise<Process | undefined> {
  try {
    const [environment, words, stat, namespace] = await Promise.all([
      readFile(`/proc/${pid}/environ`, 'latin1'),
      readFile(`/proc/${pid}/cmdline`, 'latin1'),
      readFile(`/proc/${pid}/stat`, 'latin1'),
      namespaceOf(pid),
    ]);
    // The name before it may hold blanks and brackets.
    const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const isMarked = environment.split('\0').includes(`${mark}=${value}`);
    const isWrapper = words.includes(`\0--setenv\0${mark}\0${value}\0`);
    return { pid, session: Number(session), namespace, isMarked, isWrapper };
  } catch {
    return undefined;
  }
}

function namespaceOf(pid: number | 'self'): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);
}

/** Changes when all processes have ended; empty where nothing tells it. */
export async function startOfMachine(): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '');
  const first = await readFile('/proc/1/stat', 'latin1').catch(() => '');
  // The 22nd field, in clock ticks since the boot.
  const startedAt = first.slice(first.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return `${boot.trim()} ${startedAt}`.trim();
}

/** How often who is to be killed is looked for. */
const MOST_ROUNDS = 50;

/** Signals them all. Those that are to be killed are stopped first, until nobody new is found who could start others. */
export async function signalMarked(mark: string, value: string, signal: NodeJS.Signals): Promise<void> {
  let stopped = '';
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const pids = await markedProcesses(mark, value);
    if (pids.length === 0) return;
    const found = pids.join();
    for (const pid of pids) send(pid, signal !== 'SIGKILL' || found === stopped ? signal : 'SIGSTOP');
    if (signal !== 'SIGKILL') return;
    stopped = found;
  }
  throw new Ambiguous('some of the processes still run');
}

/** To a process, or with a negative number to a group; one that has just ended is no failure. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
