import { readdir, readFile, readlink } from 'node:fs/promises';
import { Ambiguous } from '../supplier';

/** The variable that marks every command of an instance. All processes that the command starts inherit it. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

interface Process {
  readonly pid: number;
  readonly session: number;
  /** The kernel's names for its namespaces. */
  readonly processes: string | undefined;
  readonly users: string | undefined;
  readonly variables: readonly string[];
}

/** The namespaces of an instance's holder. The processes that start commands share its user namespace; commands have others. */
export interface Within {
  readonly processes: string;
  readonly users: string;
}

export async function namespacesOf(pid: number): Promise<Within | undefined> {
  const [processes, users] = [await namespaceOf(pid, 'pid'), await namespaceOf(pid, 'user')];
  return processes === undefined || users === undefined ? undefined : { processes, users };
}

/** Returns all processes that customers' commands started in an instance with namespaces. */
export async function processesWithin(within: Within): Promise<readonly number[]> {
  return (await customersIn(within)).map(({ pid }) => pid);
}

async function customersIn({ processes, users }: Within): Promise<readonly Process[]> {
  const all = await allProcesses();
  return all.filter((each) => each.processes === processes && each.users !== users);
}

/**
 * Returns the processes with a mark in their environment, and the rest of their sessions. In an instance with namespaces it adds
 * those of their user namespaces. Each command has its own, and a process stays in it even if it changes its session and
 * environment. Only Linux shows these; on other systems it returns none.
 */
export async function markedProcesses(mark: string, value: string, within?: Within): Promise<readonly number[]> {
  const all = within === undefined ? await allProcesses() : await customersIn(within);
  const marked = all.filter(({ variables }) => variables.includes(`${mark}=${value}`));
  const sessions = new Set(marked.map(({ session }) => session));
  const users = new Set(within === undefined ? [] : marked.map((each) => each.users));
  return all.filter((each) => sessions.has(each.session) || users.has(each.users)).map(({ pid }) => pid);
}

async function allProcesses(): Promise<readonly Process[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  return (await Promise.all(pids.map(look))).filter((each) => each !== undefined);
}

/** Returns a process; undefined if it has ended. */
async function look(pid: number): Promise<Process | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The process name before the last bracket may hold blanks and brackets.
  const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
  const [processes, users] = [await namespaceOf(pid, 'pid'), await namespaceOf(pid, 'user')];
  return { pid, session: Number(session), processes, users, variables: environment.split('\0') };
}

function namespaceOf(pid: number, type: 'pid' | 'user'): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/${type}`).catch(() => undefined);
}

/** Returns a text that changes when all processes have ended; empty if the system does not show it. */
export async function startOfMachine(): Promise<string> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '');
  const first = await readFile('/proc/1/stat', 'latin1').catch(() => '');
  // The 22nd field is the start in clock ticks since the boot.
  const startedAt = first.slice(first.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  return `${boot.trim()} ${startedAt}`.trim();
}

/** How often a kill looks for processes. */
const MOST_ROUNDS = 50;

/**
 * Signals all processes that `find` returns. Before SIGKILL it stops them, until no new one is found that could start others.
 * @throws Ambiguous
 */
export async function signalAll(find: () => Promise<readonly number[]>, signal: NodeJS.Signals): Promise<void> {
  let stopped = '';
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const pids = await find();
    if (pids.length === 0) return;
    const found = pids.join();
    for (const pid of pids) send(pid, signal !== 'SIGKILL' || found === stopped ? signal : 'SIGSTOP');
    if (signal !== 'SIGKILL') return;
    stopped = found;
  }
  throw new Ambiguous('some of the processes are still running');
}

/** Signals a process, or a group by its negative number. Ignores one that has just ended. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
