import type { JoinedNetwork } from '../dialer';
import { WORK_FOLDER } from '../supplier';

/** This machine's folders of programs and libraries, which instances see read-only. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];

/** The files of /etc that programs look up. Instances see no others, because these may hold secrets. */
const SYSTEM_FILES = [
  '/etc/alternatives',
  '/etc/ld.so.cache',
  '/etc/ssl/certs',
  '/etc/passwd',
  '/etc/group',
  '/etc/nsswitch.conf',
  '/etc/hosts',
];

/** The size of /dev/shm if the instance's files are on the disk. */
const SHARED_MEMORY_BYTES = 64 * 2 ** 20;

const READY = 'ready';

/**
 * Returns the arguments that make an instance: its namespaces, its root, and a process that keeps them until it is killed. That
 * process prints a line when it is ready and ends unless a line answers it, so that a killed gateway leaves nothing behind. It
 * ignores SIGCHLD, so that the kernel removes ended orphans.
 *
 * With `memoryBytes` its files are in memory: each mounted folder holds that many bytes. Otherwise they are in `root`.
 *
 * The instance runs as root, because another user would need a second user namespace for /dev/pts, which could not be joined
 * without privileges. Commands get a user namespace below it, without any privilege.
 */
export function holderWords(
  root: string,
  marks: Readonly<Record<string, string>>,
  memoryBytes: number | undefined,
): readonly string[] {
  const inMemory = (folder: string) => ['--size', String(memoryBytes ?? SHARED_MEMORY_BYTES), '--tmpfs', folder];
  const writable = (folder: string) =>
    memoryBytes === undefined ? ['--bind', `${root}${folder}`, folder] : inMemory(folder);
  const bindReadOnly = (path: string) => ['--ro-bind-try', path, path];
  return [
    'bwrap',
    ...['--info-fd', '3', '--as-pid-1', '--new-session', '--hostname', 'sandbox'],
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net', '--unshare-cgroup-try'],
    ...['--uid', '0', '--gid', '0', '--cap-drop', 'ALL'],
    // A command cannot remove a mounted folder.
    ...['/', WORK_FOLDER, '/tmp'].flatMap(writable),
    ...SYSTEM_FOLDERS.flatMap(bindReadOnly),
    // Otherwise a customer's /etc/ld.so.preload would be loaded into the program that starts commands.
    ...['--tmpfs', '/etc', ...SYSTEM_FILES.flatMap(bindReadOnly), '--remount-ro', '/etc'],
    ...['--proc', '/proc', '--dev', '/dev', ...inMemory('/dev/shm')],
    ...['--remount-ro', '/dev', ...variableWords(marks), '--chdir', '/'],
    ...['--', '/bin/sh', '-c'],
    `echo ${READY}; read -r answer && exec env --ignore-signal=CHLD sleep 2147483647 </dev/null >/dev/null 2>&1`,
  ];
}

/** Returns true once the holder has printed its line. */
export function isReady(printed: string): boolean {
  return printed.includes(`${READY}\n`);
}

const JOIN = ['nsenter', '--user', '--preserve-credentials'];

/** Returns the arguments that start a program in an instance without privileges. The program's variables come from descriptor 3. */
export function commandWords(holderPid: number, cwd: string, argv: readonly string[]): readonly string[] {
  return [
    ...[...JOIN, '--target', String(holderPid), '--mount', '--pid', '--net', '--ipc', '--uts', '--'],
    ...[
      'bwrap',
      '--args',
      '3',
      '--unshare-user',
      '--disable-userns',
      '--uid',
      '1000',
      '--gid',
      '1000',
      '--cap-drop',
      'ALL',
      '--new-session',
    ],
    ...['--dev-bind', '/', '/', '--chdir', cwd, '--', ...argv],
  ];
}

/** Returns the network of an instance, for programs of this machine. */
export function networkOf({ pid, startedAt }: { readonly pid: number; readonly startedAt: string }): JoinedNetwork {
  // The kernel may reuse a process number, so the name includes the start time.
  return { name: `${pid} ${startedAt}`, words: [...JOIN, '--target', String(pid), '--net', '--'] };
}

/**
 * Returns the arguments that set a command's variables inside. Bubblewrap reads them from a descriptor. In its own environment
 * they would control programs outside the instance, and every process could read its arguments.
 */
export function variableWords(variables: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]);
}
