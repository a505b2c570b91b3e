import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type InstanceSpec, Rejected } from '../supplier';

export type Size = Pick<InstanceSpec, 'cpu' | 'memoryGiB'>;

/** The most processes and threads of one instance. */
export const MOST_PROCESSES = 256;

/**
 * Returns the size of each writable folder of an instance whose files are in memory. This is its volume, or half of its memory if
 * its offering gives no volume.
 * @throws Rejected if the volume is larger than the memory
 */
export function folderBytes({ memoryGiB, volumeGiB }: Pick<InstanceSpec, 'memoryGiB' | 'volumeGiB'>): number {
  if (volumeGiB > memoryGiB)
    throw new Rejected(
      'files of instances are in memory: volumeGiB of the offering must not be above its memoryGiB, or the supplier needs `files: disk`',
    );
  return Math.floor((volumeGiB || memoryGiB / 2) * 2 ** 30);
}

/** The control groups below which this process makes those of instances: one folder of version 2, or one per controller of version 1. */
export interface ControlGroups {
  readonly version: 1 | 2;
  readonly folders: readonly string[];
}

/** The age from which an empty group counts as left behind. A younger one may belong to an instance that is being started. */
const LEFT_AFTER_MS = 60_000;

const CONTROLLERS = ['memory', 'pids', 'cpu'];

/**
 * Finds this process's control groups in the text of `/proc/self/mountinfo` and `/proc/self/cgroup`. Returns undefined if a
 * controller is missing.
 */
export function readControlGroups(mountInfo: string, ownGroups: string): ControlGroups | undefined {
  const mounts = mountInfo.split('\n').map(readMount);
  const own = ownPaths(ownGroups);
  const byController = CONTROLLERS.flatMap((controller) => {
    const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes(controller));
    return mount === undefined ? [] : [folderIn(mount, own.get(controller))];
  });
  if (byController.length === CONTROLLERS.length) return { version: 1, folders: [...new Set(byController)] };
  const unified = mounts.find(({ type }) => type === 'cgroup2');
  return unified && { version: 2, folders: [delegatedGroup(folderIn(unified, own.get('')))] };
}

interface Mount {
  readonly type: string | undefined;
  readonly options: readonly string[];
  readonly root: string;
  readonly mountPoint: string;
}

function readMount(line: string): Mount {
  const [place = '', kind = ''] = line.split(' - ');
  const [, , , root = '', mountPoint = ''] = place.split(' ');
  const [type, , options = ''] = kind.split(' ');
  return { type, options: options.split(','), root, mountPoint };
}

/** Reads lines such as `4:memory:/path`, and `0::/path` of version 2. */
function ownPaths(text: string): ReadonlyMap<string, string | undefined> {
  const lines = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  return new Map(
    lines.flatMap((line) => (line === null ? [] : (line[1] ?? '').split(',').map((name) => [name, line[2]] as const))),
  );
}

/** Returns the folder of a group, if the mount shows it. A mount shows only the groups below its root. */
function folderIn({ root, mountPoint }: Mount, path = '/'): string {
  const below = root === '/' ? path : path.startsWith(`${root}/`) ? path.slice(root.length) : '';
  return resolve(`${mountPoint}/${below}`);
}

/**
 * Returns the group below which others can be made. In version 2, a group with processes of its own cannot have limited groups
 * below it. systemd's `DelegateSubgroup` therefore puts the process one group below the one that it delegates.
 */
function delegatedGroup(own: string): string {
  return /\.service$/.test(dirname(own)) ? dirname(own) : own;
}

/** Returns the limits to write into a group's files, by file name. The files of `must` are required; the kernel may lack those of `may`. */
export function boundsOf(version: 1 | 2, { cpu, memoryGiB }: Size) {
  const memory = String(Math.floor(memoryGiB * 2 ** 30));
  const quota = Math.max(1_000, Math.round(cpu * 100_000));
  return version === 2
    ? {
        must: { 'memory.max': memory, 'pids.max': String(MOST_PROCESSES) },
        may: { 'memory.swap.max': '0', 'cpu.max': `${quota} 100000` },
      }
    : {
        must: { 'memory.limit_in_bytes': memory, 'pids.max': String(MOST_PROCESSES) },
        may: {
          'memory.memsw.limit_in_bytes': memory,
          'cpu.cfs_period_us': '100000',
          'cpu.cfs_quota_us': String(quota),
        },
      };
}

/** Returns this process's control groups if it may make others below them, otherwise undefined. */
export async function findControlGroups(): Promise<ControlGroups | undefined> {
  try {
    const found = readControlGroups(
      await readFile('/proc/self/mountinfo', 'utf8'),
      await readFile('/proc/self/cgroup', 'utf8'),
    );
    if (found === undefined) return undefined;
    // The kernel refuses this if the group has processes of its own, because it was then not delegated to this process.
    if (found.version === 2)
      await writeFile(join(found.folders[0] ?? '', 'cgroup.subtree_control'), '+memory +pids +cpu');
    await removeLeft(found);
    await removeGroups(await makeGroups(found, `probe-${process.pid}-${Date.now()}`, { cpu: 1, memoryGiB: 1 }));
    return found;
  } catch {
    return undefined;
  }
}

/** Removes groups of a gateway that was killed before it used them. The kernel refuses to remove groups with processes. */
async function removeLeft({ folders }: ControlGroups): Promise<void> {
  for (const folder of folders) {
    for (const name of (await readdir(folder)).filter((each) => /^tollgate-[0-9a-f-]{36}$/.test(each))) {
      const { ctimeMs } = await stat(join(folder, name)).catch(() => ({ ctimeMs: Date.now() }));
      if (Date.now() - ctimeMs > LEFT_AFTER_MS) await rmdir(join(folder, name)).catch(() => undefined);
    }
  }
}

/** Makes the control groups of an instance. @returns their folders @throws the kernel's error */
export async function makeGroups(
  { version, folders }: ControlGroups,
  name: string,
  size: Size,
): Promise<readonly string[]> {
  const made = folders.map((folder) => join(folder, `tollgate-${name}`));
  const { must, may } = boundsOf(version, size);
  try {
    for (const folder of made) await mkdir(folder, { recursive: true });
    for (const [file, value] of Object.entries(must)) await writeFile(await fileIn(made, file), value);
    for (const [file, value] of Object.entries(may))
      await fileIn(made, file)
        .then((path) => writeFile(path, value))
        .catch(() => undefined);
    return made;
  } catch (error) {
    await removeGroups(made);
    throw error;
  }
}

async function fileIn(folders: readonly string[], file: string): Promise<string> {
  for (const folder of folders)
    if ((await stat(join(folder, file)).catch(() => undefined)) !== undefined) return join(folder, file);
  throw new Error(`the kernel does not provide ${file}`);
}

const EMPTY_WITHIN_MS = 10_000;

/** Removes groups whose processes have been killed. It retries, because the kernel may not have removed all of them yet. */
export async function removeGroups(groups: readonly string[]): Promise<void> {
  const deadline = Date.now() + EMPTY_WITHIN_MS;
  for (const group of groups) {
    while (!(await isRemoved(group)) && Date.now() < deadline) await sleep(10);
  }
}

function isRemoved(group: string): Promise<boolean> {
  return rmdir(group).then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code !== 'EBUSY',
  );
}

/** A shell script that joins the groups and then replaces itself by the program. Everything that the program starts stays in the groups. */
const JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';

/** Returns the arguments before a program's own that start it in these groups. */
export function joinWords(groups: readonly string[]): readonly string[] {
  return groups.length === 0 ? [] : ['/bin/sh', '-c', JOIN, 'sh', ...groups, '--'];
}

/** Returns the arguments that limit one command without control groups. */
export function limitWords({ memoryGiB }: Size): readonly string[] {
  return ['prlimit', `--nproc=${MOST_PROCESSES}`, `--data=${Math.floor(memoryGiB * 2 ** 30)}`, '--core=0', '--'];
}
