import type { JoinedNetwork } from '../dialer';
import { WORK_FOLDER } from '../supplier';

/** Programs and libraries of this machine that instances see, read-only. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64'];

/** What programs look up. The rest of /etc is not there: it may hold anybody's secrets. */
const SYSTEM_FILES = [
  '/etc/alternatives',
  '/etc/ld.so.cache',
  '/etc/ssl/certs',
  '/etc/passwd',
  '/etc/group',
  '/etc/nsswitch.conf',
  '/etc/hosts',
];

/** What /dev/shm holds where the files of the instance are on the disk. */
const SHARED_MEMORY_BYTES = 64 * 2 ** 20;

const READY = 'ready';

/**
 * Returns the words that make an instance: namespaces of its own, its own root, and a process that keeps them until it is
 * killed. That process prints a line when it is there, and ends unless a line answers it: a gateway that is killed meanwhile
 * leaves nothing behind. It ignores SIGCHLD, so that the kernel removes orphans that have ended.
 *
 * With `memoryBytes` its files are in memory: each folder that is mounted holds so many bytes. Otherwise they are in `root`.
 *
 * Inside it is root, because a second user namespace, which another user would need for /dev/pts, could not be joined
 * without privileges. Commands get a user namespace below, without any privilege.
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
    // Folders that are mounted cannot be removed by a command.
    ...['/', WORK_FOLDER, '/tmp'].flatMap(writable),
    ...SYSTEM_FOLDERS.flatMap(bindReadOnly),
    // An /etc/ld.so.preload of the customer would be loaded into what starts a command.
    ...['--tmpfs', '/etc', ...SYSTEM_FILES.flatMap(bindReadOnly), '--remount-ro', '/etc'],
    ...['--proc', '/proc', '--dev', '/dev', ...inMemory('/dev/shm')],
    ...['--remount-ro', '/dev', ...variableWords(marks), '--chdir', '/'],
    ...['--', '/bin/sh', '-c'],
    `echo ${READY}; read -r answer && exec env --ignore-signal=CHLD sleep 2147483647 </dev/null >/dev/null 2>&1`,
  ];
}

/** Returns whether the holder has printed its line. */
export function isReady(printed: string): boolean {
  return printed.includes(`${READY}\n`);
}

const JOIN = ['nsenter', '--user', '--preserve-credentials'];

/** Returns the words that start a program in an instance, read its variables from descriptor 3, and give it no privileges. */
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

/** Returns the network of an instance, for a program of this machine's own. */
export function networkOf({ pid, startedAt }: { readonly pid: number; readonly startedAt: string }): JoinedNetwork {
  // A process number alone may be given again.
  return { name: `${pid} ${startedAt}`, words: [...JOIN, '--target', String(pid), '--net', '--'] };
}

/**
 * Returns the words that set a command's variables inside. Bubblewrap reads them from a descriptor: in its own environment
 * they would decide what is run outside, and among its words every process could read them.
 */
export function variableWords(variables: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]);
}
