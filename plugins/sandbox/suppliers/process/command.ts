import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { Ambiguous, type CommandSpec, NotSent, type OutputFrame, type RunningCommand, WORK_FOLDER } from '../supplier';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const NAMESPACES = '--unshare-all --unshare-user --disable-userns --cap-drop ALL --new-session'.split(' ');

/** The host's folders that commands can read but not change: programs, libraries, their configuration. Not /etc, which may hold secrets. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];
const SYSTEM_FILES = ['alternatives', 'ld.so.cache', 'ssl/certs', 'passwd', 'group', 'nsswitch.conf', 'hosts'];

const readOnly = (path: string) => ['--ro-bind-try', path, path];

/** Returns the words before a command that isolate it: the command sees only its instance's root, and has no network. */
function isolation(root: string, cwd: string): readonly string[] {
  return [
    ...['bwrap', ...NAMESPACES, '--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    // A command cannot replace a folder that is a mount point, so none of these folders can become a link.
    ...['', WORK_FOLDER, '/tmp'].flatMap((folder) => ['--bind', `${root}${folder}`, folder || '/']),
    ...SYSTEM_FOLDERS.flatMap(readOnly),
    ...['--tmpfs', '/etc', ...SYSTEM_FILES.flatMap((name) => readOnly(`/etc/${name}`)), '--remount-ro', '/etc'],
    ...['--proc', '/proc', '--dev', '/dev', '--chdir', cwd, '--args', '3', '--'],
  ];
}

/** A command and the root of its instance. `marks` are environment variables of all processes of the command. */
type Program = Omit<CommandSpec, 'id'> & { readonly root: string; readonly marks: CommandSpec['env'] };

/** Starts a command in a session and process group of its own. It inherits no environment variable of the gateway. @throws NotSent */
export async function startCommand(isIsolated: boolean, program: Program): Promise<RunningCommand> {
  const { root, cwd = '', command, marks, stdin } = program;
  const variables = { PATH, HOME: `${isIsolated ? '' : root}${WORK_FOLDER}`, ...program.env };
  const [file = '', ...argv] = [...(isIsolated ? isolation(root, cwd) : []), '/bin/sh', '-c', command];
  const child = spawn(file, argv, {
    cwd: isIsolated ? '/' : `${root}${cwd}`,
    // Bubblewrap itself runs outside of the sandbox, so it reads the customer's environment variables from a file descriptor.
    env: isIsolated ? { PATH, ...marks } : { ...variables, ...marks },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', isIsolated ? 'pipe' : 'ignore'],
  });
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const ended = exit.then(([code, signal]) => ({ exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'] }));
  ended.catch(() => undefined);
  await once(child, 'spawn').catch((cause: Error) => {
    throw new NotSent(`the command cannot be started: ${cause.message}`, { cause });
  });
  const words = Object.entries(variables).flatMap((each) => ['--setenv', ...each]);
  // A program may close its standard input without reading it. This is no error.
  child.stdin?.on('error', () => undefined).end(stdin ?? '');
  (child.stdio[3] as Socket | null)?.on('error', () => undefined).end(words.map((word) => `${word}\0`).join(''));
  return { output: outputOf(child, ended), exit: ended };
}

/** Tests whether this machine can isolate commands. @throws an error with the reason if it cannot */
export async function tryIsolation(): Promise<void> {
  const words = '--ro-bind / / --proc /proc --dev /dev true'.split(' ');
  await promisify(execFile)('bwrap', [...NAMESPACES, ...words]);
}

/** How long the gateway reads output after the command's end, because a process left behind by the command may hold the stream open. */
const LINGER_MS = 200;

/** Returns stdout and stderr merged, in the order they were read. Reading is no faster than the consumer. */
function outputOf({ stdout, stderr }: ChildProcess, exit: Promise<unknown>): AsyncIterable<OutputFrame> {
  const frames = new PassThrough({ objectMode: true });
  const reads = Object.entries({ stdout, stderr } as object as Record<string, Socket>).map(async ([stream, source]) => {
    frames.once('close', () => source.destroy());
    void exit.then(() => endWhenIdle(source));
    for await (const bytes of source) if (!frames.write({ stream, bytes })) await once(frames, 'drain');
  });
  void Promise.allSettled(reads).then(() => frames.end());
  return frames as AsyncIterable<OutputFrame>;
}

/** Ends a stream that has been idle for `LINGER_MS`. It checks twice, because a blocked event loop may not have read yet what arrived. */
function endWhenIdle(source: Socket): void {
  source.setTimeout(LINGER_MS).on('timeout', () => {
    const { bytesRead } = source;
    setImmediate(() => {
      if (source.bytesRead === bytesRead && source.readableLength === 0) source.destroy();
      else source.setTimeout(LINGER_MS);
    });
  });
}

/** The environment variables that mark the commands of an instance. Their child processes inherit them. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const PROCESS_COMMAND_MARK = 'TOLLGATE_COMMAND';

interface Process {
  readonly pid: number;
  readonly group: number;
  /** The kernel's name for the process namespace of the process; undefined if it cannot be read. */
  readonly space: string | undefined;
  readonly variables: readonly string[];
}

/** Returns the processes whose environment has this mark, and all processes in their namespaces. It skips the gateway's namespace. */
export async function markedProcesses(mark: string, value: string): Promise<readonly Process[]> {
  const pids = (await namesIn('/proc')).filter((name) => /^\d+$/.test(name));
  const all = (await Promise.all(pids.map(look))).flat();
  const marked = all.filter(({ variables }) => variables.includes(`${mark}=${value}`));
  const ours = [await spaceOf('self'), undefined];
  const spaces = new Set(marked.map(({ space }) => space).filter((space) => !ours.includes(space)));
  return all.filter((each) => marked.includes(each) || spaces.has(each.space));
}

/** Returns a list with the process that has this id, or an empty list if that process has ended. */
async function look(pid: string): Promise<readonly Process[]> {
  const [state = '', , group] = fieldsOf(await textOf(`/proc/${pid}/stat`));
  if (['', 'Z', 'X'].includes(state)) return [];
  const variables = (await textOf(`/proc/${pid}/environ`)).split('\0');
  return [{ pid: Number(pid), group: Number(group), space: await spaceOf(pid), variables }];
}

/** Returns the fields of `/proc/<pid>/stat` after the name, which is in parentheses and may itself hold blanks and parentheses. */
const fieldsOf = (stat: string) => stat.slice(stat.lastIndexOf(')') + 2).split(' ');
const spaceOf = (pid: string) => readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);
const textOf = (file: string) => readFile(file, 'latin1').catch(() => '');
const namesIn = (folder: string) => readdir(folder).catch(() => []);

/** Returns a text that changes when the machine or its container restarts, which ends all processes; empty if the system does not show it. */
export async function startOfMachine(): Promise<string> {
  const boot = await textOf('/proc/sys/kernel/random/boot_id');
  return `${boot.trim()} ${fieldsOf(await textOf('/proc/1/stat'))[19] ?? ''}`.trim();
}

/** Signals the process groups of all processes that `find` returns. Repeats SIGKILL until `find` returns none. @throws Ambiguous if processes remain */
export async function signalAll(find: () => Promise<readonly Process[]>, signal: NodeJS.Signals): Promise<void> {
  const own = await spaceOf('self');
  for (let round = 0; round < 50; round += 1) {
    const found = await find();
    const inside = found.filter(({ space }) => space !== own);
    // Only the program bubblewrap runs outside of the command's namespace. It waits for the command, so it must not stop or end before it.
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
    // The error ESRCH is ignored, because the process may just have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Returns whether a process of the list listens on a port of this machine, and no other process does. */
export async function listen(processes: readonly Process[], wanted: number): Promise<boolean> {
  const opened = processes.map(async ({ pid }) => {
    const names = await namesIn(`/proc/${pid}/fd`);
    return Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  });
  const own = new Set((await Promise.all(opened)).flat());
  // A line of these files is `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`. Addresses are `hex:hex port`; state 0A means
  // listening.
  const lines = `${await textOf('/proc/self/net/tcp')}\n${await textOf('/proc/self/net/tcp6')}`.split('\n');
  const owners = lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    const isWanted = state === '0A' && Number.parseInt(local.split(':')[1] ?? '', 16) === wanted;
    return isWanted ? [own.has(`socket:[${inode}]`)] : [];
  });
  return owners.length > 0 && owners.every(Boolean);
}
