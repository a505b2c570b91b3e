import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../support/until';

const GONE_WITHIN_MS = 30_000;

/** A folder of the same name in every cgroup hierarchy of the machine. */
export interface Cgroup {
  readonly name: string;
  readonly hierarchies: readonly string[];
  /** Lets frozen processes run, because a frozen process cannot be killed. */
  thaw(): Promise<void>;
  /** Waits until its last process has ended, then removes it and the groups below it. */
  remove(): Promise<void>;
}

/** Returns where the cgroup hierarchies are mounted, from the text of `/proc/self/mountinfo`. */
export function hierarchiesIn(mountinfo: string): readonly string[] {
  const mounted = mountinfo.split('\n').flatMap((line) => {
    const [, folder] = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2? /.exec(line) ?? [];
    return folder === undefined ? [] : [folder];
  });
  return [...new Set(mounted)];
}

export async function makeCgroup(name: string): Promise<Cgroup> {
  const hierarchies = hierarchiesIn(await readFile('/proc/self/mountinfo', 'utf8'));
  const folders = hierarchies.map((hierarchy) => join(hierarchy, name));
  for (const folder of folders) await makeGroup(folder);
  return {
    name,
    hierarchies,
    thaw: async () => {
      for (const folder of folders) await thaw(folder);
    },
    remove: async () => {
      for (const folder of folders) await until(`${folder} is removed`, () => removeGroup(folder), GONE_WITHIN_MS);
    },
  };
}

/** In cgroup v1 a new group has no processors and no memory nodes, and accepts no process before it has. */
async function makeGroup(folder: string): Promise<void> {
  await mkdir(folder);
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    const parent = join(folder, '..', name);
    if (existsSync(parent)) await writeFile(join(folder, name), await readFile(parent));
  }
}

async function thaw(folder: string): Promise<void> {
  const state = join(folder, 'freezer.state');
  if (existsSync(state)) await writeFile(state, 'THAWED');
  for (const below of await groupsBelow(folder)) await thaw(below);
}

/** Returns true when the group is gone; throws while it has processes. */
async function removeGroup(folder: string): Promise<boolean> {
  for (const below of await groupsBelow(folder)) await removeGroup(below);
  if (existsSync(folder)) await rmdir(folder);
  return true;
}

async function groupsBelow(folder: string): Promise<readonly string[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}
