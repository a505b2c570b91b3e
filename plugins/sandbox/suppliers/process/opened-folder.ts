import { constants } from 'node:fs';
import { lstat, mkdir, open, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { confinedNames, tooManyLinks } from '../confined-path';

const MOST_LINKS = 40;
/** Without /proc a folder is named by its path. Such a system has no namespaces either, so nothing is confined there anyway. */
const HAS_PROC = process.platform === 'linux';
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY;

/** A folder that stays the same while commands rename folders and create links around it. */
export interface OpenedFolder {
  /** The folder's path: `join(place, name)` reaches a name in it. */
  readonly place: string;
  close(): Promise<void>;
}

/**
 * Descends from an instance's root name by name. It opens each folder within the one before and never through a link, so that no
 * command can divert it.
 * @throws ENOENT, ENOTDIR
 */
export async function openFolder(
  root: string,
  names: readonly string[],
  { makes = false } = {},
): Promise<OpenedFolder> {
  let folder = await openAt(root, FOLDER);
  for (const name of names) {
    const outer = folder;
    try {
      if (makes) await mkdir(join(outer.place, name)).catch(unlessThere);
      folder = await openInside(join(outer.place, name));
    } finally {
      await outer.close();
    }
  }
  return folder;
}

/** Opens a folder within an opened one. @throws ENOTDIR for a link */
export function openInside(place: string): Promise<OpenedFolder> {
  return openAt(place, FOLDER | constants.O_NOFOLLOW);
}

async function openAt(path: string, flags: number): Promise<OpenedFolder> {
  const handle = await open(path, flags);
  return { place: HAS_PROC ? `/proc/self/fd/${handle.fd}` : path, close: () => handle.close() };
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/**
 * Returns a path with its links resolved, and keeps names that do not exist. Links resolve as the instance sees them: an absolute
 * one begins at the instance's root, and `..` never leaves it.
 * @throws FileFailure
 */
export async function follow(root: string, names: readonly string[], links = 0): Promise<readonly string[]> {
  if (links > MOST_LINKS) throw tooManyLinks();
  const met = await firstLink(root, names);
  if (met === undefined) return names;
  const led = posix.resolve('/', ...names.slice(0, met.index), met.target);
  // A command without namespaces writes links with the root's own path.
  const inside = led.startsWith(`${root}/`) ? led.slice(root.length) : led;
  return follow(root, confinedNames([inside, ...names.slice(met.index + 1)].join('/')), links + 1);
}

async function firstLink(root: string, names: readonly string[]) {
  let folder = await openFolder(root, []);
  try {
    for (const [index, name] of names.entries()) {
      const place = join(folder.place, name);
      const stat = await lstat(place);
      if (stat.isSymbolicLink()) return { index, target: await readlink(place) };
      if (!stat.isDirectory() || index === names.length - 1) return undefined;
      const next = await openInside(place);
      await folder.close();
      folder = next;
    }
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  } finally {
    await folder.close();
  }
}
