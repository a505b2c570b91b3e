import { constants, type Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rmdir, unlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import * as paths from '../confined-path';
import { type FileEntry, FileFailure, type InstanceReference, LIST_LIMIT, type SupplierFiles } from '../supplier';

const { O_RDONLY, O_WRONLY, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const MAX_LINKS = 40;

/** Returns the files API for instances whose root is a folder. It is safe while commands rename folders and create links there. */
export function folderFiles(rootOf: (reference: InstanceReference) => Promise<string>): SupplierFiles {
  const find = async (reference: InstanceReference, path: readonly string[]) => {
    const root = await rootOf(reference);
    return { root, names: await follow(root, path) };
  };
  return {
    read: async (reference, path) => {
      const { root, names } = await find(reference, paths.confinedNames(path));
      return inFolder(root, names.slice(0, -1), async (folder) => {
        const handle = await open(join(folder, names.at(-1) ?? '.'), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        try {
          const stat = await handle.stat();
          if (!stat.isFile()) throw paths.notAFile(typeOf(stat));
          return { byteLength: stat.size, content: handle.createReadStream() };
        } catch (error) {
          await handle.close();
          throw error;
        }
      });
    },
    write: async (reference, path, content) => {
      const { root, names } = await find(reference, paths.confinedNames(path));
      const name = names.at(-1);
      if (name === undefined) throw paths.notAFile('folder');
      paths.mustBeWritable(names);
      const write = async (folder: string) => {
        const handle = await open(join(folder, name), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
        try {
          if (!(await handle.stat()).isFile()) throw paths.notAFile('other');
          await handle.truncate(0);
          await handle.writeFile(content);
        } finally {
          await handle.close();
        }
      };
      await inFolder(root, names.slice(0, -1), write, true);
    },
    list: async (reference, path, depth) => {
      const { root, names } = await find(reference, paths.confinedNames(path));
      const entries: FileEntry[] = [];
      await inFolder(root, names, (folder) => collect(folder, names, depth, entries));
      return entries;
    },
    remove: async (reference, path) => {
      const { folder, last } = paths.removableNames(path);
      const { root, names } = await find(reference, folder);
      paths.mustBeRemovable([...names, last]);
      await inFolder(root, names, (opened) => removeAt(join(opened, last)));
    },
  };
}

/** Returns the path of a folder below a root, with all links resolved. @throws FileFailure if there is no such folder */
export async function folderIn(root: string, path: readonly string[]): Promise<string> {
  const names = await follow(root, path);
  return inFolder(root, names, async () => `/${names.join('/')}`);
}

/**
 * Returns a path with its links resolved as the instance sees them: an absolute link begins at the instance's root, and `..` never leaves
 * it. `inFolder` detects later changes, because it follows no link.
 * @throws FileFailure
 */
async function follow(root: string, names: readonly string[], links = 0): Promise<readonly string[]> {
  for (let index = 0; index < names.length; index += 1) {
    const target = await readlink(join(root, ...names.slice(0, index + 1))).catch(() => undefined);
    if (target === undefined) continue;
    if (links === MAX_LINKS) throw paths.tooManyLinks();
    const led = posix.resolve('/', ...names.slice(0, index), target);
    // A command without isolation sees the host's paths, so an absolute link that it makes begins with the host's path of the instance's root.
    const inside = led.startsWith(`${root}/`) ? led.slice(root.length) : led;
    return follow(root, paths.confinedNames([inside, ...names.slice(index + 1)].join('/')), links + 1);
  }
  return names;
}

/**
 * Runs an action in a folder. It opens each folder relative to its parent and follows no link, so that no command can divert it.
 * @throws FileFailure
 */
async function inFolder<T>(
  root: string,
  names: readonly string[],
  act: (folder: string) => Promise<T>,
  makes = false,
): Promise<T> {
  const openAt = (path: string) => open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    let folder = await openAt(root);
    try {
      for (const name of names) {
        const path = `/proc/self/fd/${folder.fd}/${name}`;
        if (makes) await mkdir(path).catch(unlessThere);
        const next = await openAt(path);
        await folder.close();
        folder = next;
      }
      return await act(`/proc/self/fd/${folder.fd}`);
    } finally {
      await folder.close();
    }
  } catch (error) {
    throw toFileFailure(error, names);
  }
}

/** Removes a path and everything in it. It opens each folder before it descends into it. @throws ENOENT */
async function removeAt(place: string): Promise<void> {
  if (!(await lstat(place)).isDirectory()) return unlink(place);
  await inFolder(place, [], async (folder) => {
    for (const name of await readdir(folder)) await removeAt(join(folder, name)).catch(unlessMissing);
  });
  await rmdir(place);
}

async function collect(folder: string, names: readonly string[], depth: number, into: FileEntry[]): Promise<void> {
  for (const name of (await readdir(folder)).sort()) {
    const stat = await lstat(join(folder, name)).catch(unlessMissing);
    if (into.length === LIST_LIMIT || stat === undefined) continue;
    const path = paths.shownPath(['', ...names, name].join('/'));
    into.push({ path, type: typeOf(stat), byteLength: stat.size, modifiedAt: stat.mtime });
    if (!stat.isDirectory() || depth === 1) continue;
    const descend = (inner: string) => collect(inner, [...names, name], depth - 1, into);
    // The list skips the content of a folder that a command removes meanwhile or that the gateway may not enter.
    await inFolder(join(folder, name), [], descend).catch(() => undefined);
  }
}

function typeOf(stat: Stats): FileEntry['type'] {
  return stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other';
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

function unlessMissing(error: unknown): undefined {
  const failure = toFileFailure(error, []);
  if (!(failure instanceof FileFailure) || failure.reason !== 'not-found') throw failure;
}

const REASONS: Readonly<Record<string, FileFailure['reason']>> = {
  ...{ ENOTDIR: 'not-folder', EISDIR: 'is-folder', ELOOP: 'path-invalid', ENOSPC: 'no-space', EDQUOT: 'no-space' },
  ...{ EACCES: 'not-allowed', EPERM: 'not-allowed', ENXIO: 'not-allowed', EBUSY: 'not-allowed' },
  ...{ ETXTBSY: 'not-allowed', ENOTEMPTY: 'not-allowed' },
};

function toFileFailure(error: unknown, names: readonly string[]): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return paths.notFound(names);
  const reason = REASONS[code];
  return reason === undefined ? error : new FileFailure(reason, `path: ${code}`);
}
