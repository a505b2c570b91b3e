import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { PassThrough } from 'node:stream';
import { promisify } from 'node:util';
import { type CommandSpec, NotSent, type OutputFrame, type RunningCommand, WORK_FOLDER } from '../supplier';

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
