import { readdir, readFile, readlink } from 'node:fs/promises';
import { Ambiguous } from '../supplier';

/** The variables that mark the commands of an instance. The processes that they start inherit them. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const COMMAND_MARK = 'TOLLGATE_COMMAND';

interface Process {
  readonly pid: number;
  readonly group: number;
  /** The kernel's name for its process namespace. */
  readonly space: string | undefined;
  readonly variables: readonly string[];
}

/** Returns the processes with a mark, and everything in their namespaces. */
export async function markedProcesses(mark: string, value: string): Promise<readonly Process[]> {
  const pids = (await namesIn('/proc')).filter((name) => /^\d+$/.test(name));
  const all = (await Promise.all(pids.map(look))).flat();
  const marked = all.filter(({ variables }) => variables.includes(`${mark}=${value}`));
  const ours = [await spaceOf('self'), undefined];
  const spaces = new Set(marked.map(({ space }) => space).filter((space) => !ours.includes(space)));
  return all.filter((each) => marked.includes(each) || spaces.has(each.space));
}

/** Returns a process, or nothing if it has ended. */
async function look(pid: string): Promise<readonly Process[]> {
  const [state = '', , group] = fieldsOf(await textOf(`/proc/${pid}/stat`));
  if (['', 'Z', 'X'].includes(state)) return [];
  const variables = (await textOf(`/proc/${pid}/environ`)).split('\0');
  return [{ pid: Number(pid), group: Number(group), space: await spaceOf(pid), variables }];
}

/** Returns the fields after the name, which is in brackets and may itself hold blanks and brackets. */
const fieldsOf = (stat: string) => stat.slice(stat.lastIndexOf(')') + 2).split(' ');
const spaceOf = (pid: string) => readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);
const textOf = (file: string) => readFile(file, 'latin1').catch(() => '');
const namesIn = (folder: string) => readdir(folder).catch(() => []);

/** Returns a text that changes when all processes have ended, with the machine or its container; empty if the system does not show it. */
export async function startOfMachine(): Promise<string> {
  const boot = await textOf('/proc/sys/kernel/random/boot_id');
  return `${boot.trim()} ${fieldsOf(await textOf('/proc/1/stat'))[19] ?? ''}`.trim();
}

/** Signals the groups of the processes that `find` returns; SIGKILL until none are left that were started meanwhile. @throws Ambiguous */
export async function signalAll(find: () => Promise<readonly Process[]>, signal: NodeJS.Signals): Promise<void> {
  const own = await spaceOf('self');
  for (let round = 0; round < 50; round += 1) {
    const found = await find();
    const inside = found.filter(({ space }) => space !== own);
    // Outside a namespace only bubblewrap waits for its end. It must neither stop nor end before the command.
    const isForAll = signal === 'SIGKILL' || signal === 'SIGCONT' || inside.length === 0;
    for (const group of new Set((isForAll ? found : inside).map((each) => each.group))) sendToGroup(group, signal);
    if (found.length === 0 || signal !== 'SIGKILL') return;
  }
  throw new Ambiguous('some of the processes are still running');
}

function sendToGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    // It may just have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Returns whether these processes, and no others, listen on a port of this machine. */
export async function listen(processes: readonly Process[], wanted: number): Promise<boolean> {
  const opened = processes.map(async ({ pid }) => {
    const names = await namesIn(`/proc/${pid}/fd`);
    return Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  });
  const own = new Set((await Promise.all(opened)).flat());
  // Lines of `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`; addresses are `hex:hex port`, and 0A listens.
  const lines = `${await textOf('/proc/self/net/tcp')}\n${await textOf('/proc/self/net/tcp6')}`.split('\n');
  const owners = lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    const isWanted = state === '0A' && Number.parseInt(local.split(':')[1] ?? '', 16) === wanted;
    return isWanted ? [own.has(`socket:[${inode}]`)] : [];
  });
  return owners.length > 0 && owners.every(Boolean);
}
