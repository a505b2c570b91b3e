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

/** The folders of this machine that commands see, read-only: programs and libraries, and what programs look up. /etc may hold secrets. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];
const SYSTEM_FILES = ['alternatives', 'ld.so.cache', 'ssl/certs', 'passwd', 'group', 'nsswitch.conf', 'hosts'];

const readOnly = (path: string) => ['--ro-bind-try', path, path];

/** Returns the words before a command that isolate it. It has the root of its instance, and no network. */
function isolation(root: string, cwd: string): readonly string[] {
  return [
    ...['bwrap', ...NAMESPACES, '--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
    // A command cannot replace a folder that something is mounted at, so none of these becomes a link.
    ...['', WORK_FOLDER, '/tmp'].flatMap((folder) => ['--bind', `${root}${folder}`, folder || '/']),
    ...SYSTEM_FOLDERS.flatMap(readOnly),
    ...['--tmpfs', '/etc', ...SYSTEM_FILES.flatMap((name) => readOnly(`/etc/${name}`)), '--remount-ro', '/etc'],
    ...['--proc', '/proc', '--dev', '/dev', '--chdir', cwd, '--args', '3', '--'],
  ];
}

/** A command in the root of its instance. `marks` are variables of all of its processes. */
type Program = Omit<CommandSpec, 'id'> & { readonly root: string; readonly marks: CommandSpec['env'] };

/** Starts a command in a session and group of its own. It inherits no variable of the gateway. @throws NotSent */
export async function startCommand(isIsolated: boolean, program: Program): Promise<RunningCommand> {
  const { root, cwd = '', command, marks, stdin } = program;
  const variables = { PATH, HOME: `${isIsolated ? '' : root}${WORK_FOLDER}`, ...program.env };
  const [file = '', ...argv] = [...(isIsolated ? isolation(root, cwd) : []), '/bin/sh', '-c', command];
  const child = spawn(file, argv, {
    cwd: isIsolated ? '/' : `${root}${cwd}`,
    // Bubblewrap itself runs outside, so it reads the customer's variables from a descriptor.
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
  // A program that does not read its input closes it, which is no error.
  child.stdin?.on('error', () => undefined).end(stdin ?? '');
  (child.stdio[3] as Socket | null)?.on('error', () => undefined).end(words.map((word) => `${word}\0`).join(''));
  return { output: outputOf(child, ended), exit: ended };
}

/** @throws an error that says why commands cannot be isolated on this machine */
export async function tryIsolation(): Promise<void> {
  const words = '--ro-bind / / --proc /proc --dev /dev true'.split(' ');
  await promisify(execFile)('bwrap', [...NAMESPACES, ...words]);
}

/** How long output is still read after the command's end, because a process that it left behind may hold the stream open. */
const LINGER_MS = 200;

/** Returns both streams in the order they were read. It reads no faster than its consumer. */
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

/** Ends a stream from which nothing more comes. It looks once more, because a blocked process may have missed what came. */
function endWhenIdle(source: Socket): void {
  source.setTimeout(LINGER_MS).on('timeout', () => {
    const { bytesRead } = source;
    setImmediate(() => {
      if (source.bytesRead === bytesRead && source.readableLength === 0) source.destroy();
      else source.setTimeout(LINGER_MS);
    });
  });
}

/** The variables that mark the commands of an instance. The processes that they start inherit them. */
export const INSTANCE_MARK = 'TOLLGATE_INSTANCE';
export const PROCESS_COMMAND_MARK = 'TOLLGATE_COMMAND';

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
