import { mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type InstanceSpec, Rejected } from '../supplier';

export type Size = Pick<InstanceSpec, 'cpu' | 'memoryGiB'>;

/** The most processes and threads of one instance. */
export const MOST_PROCESSES = 256;

/**
 * Returns how many bytes each writable folder of an instance holds whose files are in memory: its volume, or half of its memory
 * where its offering names no volume. @throws Rejected where the volume is larger than the memory
 */
export function folderBytes({ memoryGiB, volumeGiB }: Pick<InstanceSpec, 'memoryGiB' | 'volumeGiB'>): number {
  if (volumeGiB > memoryGiB)
    throw new Rejected(
      'files of instances are in memory: volumeGiB of the offering must not be above its memoryGiB, or the supplier needs `files: disk`',
    );
  return Math.floor((volumeGiB || memoryGiB / 2) * 2 ** 30);
}

/** Folders of this process's own control groups, below which those of instances are made: one of version 2, or one per controller. */
export interface ControlGroups {
  readonly version: 1 | 2;
  readonly folders: readonly string[];
}

/** How long a group may be empty because its instance is being started. */
const LEFT_AFTER_MS = 60_000;

const CONTROLLERS = ['memory', 'pids', 'cpu'];

/** Returns where `/proc/self/mountinfo` and `/proc/self/cgroup` say that this process is; undefined when a controller is missing. */
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

/** Reads lines like `4:memory:/path` and, of version 2, `0::/path`. */
function ownPaths(text: string): ReadonlyMap<string, string | undefined> {
  const lines = text.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line));
  return new Map(
    lines.flatMap((line) => (line === null ? [] : (line[1] ?? '').split(',').map((name) => [name, line[2]] as const))),
  );
}

/** A mount shows the groups below its root only. */
function folderIn({ root, mountPoint }: Mount, path = '/'): string {
  const below = root === '/' ? path : path.startsWith(`${root}/`) ? path.slice(root.length) : '';
  return resolve(`${mountPoint}/${below}`);
}

/**
 * Returns the group below which others can be made: with version 2 one with processes of its own has no bounded groups below
 * it. systemd's `DelegateSubgroup` puts the process into a group below the one that it hands over.
 */
function delegatedGroup(own: string): string {
  return /\.service$/.test(dirname(own)) ? dirname(own) : own;
}

/** Returns what is written into which file of a group. The first ones must be there; the others only where the kernel has them. */
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

/** Returns this process's control groups if it may make others below them; undefined otherwise. */
export async function findControlGroups(): Promise<ControlGroups | undefined> {
  try {
    const found = readControlGroups(
      await readFile('/proc/self/mountinfo', 'utf8'),
      await readFile('/proc/self/cgroup', 'utf8'),
    );
    if (found === undefined) return undefined;
    // Refused where the group has processes of its own: then it was not handed to this process.
    if (found.version === 2)
      await writeFile(join(found.folders[0] ?? '', 'cgroup.subtree_control'), '+memory +pids +cpu');
    await removeLeft(found);
    await removeGroups(await makeGroups(found, `probe-${process.pid}-${Date.now()}`, { cpu: 1, memoryGiB: 1 }));
    return found;
  } catch {
    return undefined;
  }
}

/** Removes groups that a gateway made and was killed before it used them. The kernel keeps those with processes. */
async function removeLeft({ folders }: ControlGroups): Promise<void> {
  for (const folder of folders) {
    for (const name of (await readdir(folder)).filter((each) => /^tollgate-[0-9a-f-]{36}$/.test(each))) {
      const { ctimeMs } = await stat(join(folder, name)).catch(() => ({ ctimeMs: Date.now() }));
      if (Date.now() - ctimeMs > LEFT_AFTER_MS) await rmdir(join(folder, name)).catch(() => undefined);
    }
  }
}

/** Makes the groups of an instance. @returns their folders @throws what the kernel refuses */
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

/** Removes groups whose processes have been killed; the kernel may still be burying some. */
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

/** Puts the shell into the groups, which everything started by it stays in, and replaces it by the program. */
const JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';

/** Returns the words before a program's own that start it in these groups. */
export function joinWords(groups: readonly string[]): readonly string[] {
  return groups.length === 0 ? [] : ['/bin/sh', '-c', JOIN, 'sh', ...groups, '--'];
}

/** Returns the words before a command's own that bound it alone, where there are no control groups. */
export function limitWords({ memoryGiB }: Size): readonly string[] {
  return ['prlimit', `--nproc=${MOST_PROCESSES}`, `--data=${Math.floor(memoryGiB * 2 ** 30)}`, '--core=0', '--'];
}
