import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  confinedNames,
  isKernelFolder,
  mustBeRemovable,
  mustBeWritable,
  notAFile,
  notFound,
  removableNames,
  shownPath,
} from '../confined-path';
import {
  type FileContent,
  type FileEntry,
  FileFailure,
  InstanceGone,
  type InstanceReference,
  LIST_LIMIT,
  type SupplierFiles,
} from '../supplier';
import { follow, openFolder, openInside } from './opened-folder';

const { O_RDONLY, O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Accesses the files of an instance whose root is a folder that this process can open. */
export class FolderFiles implements SupplierFiles {
  constructor(private readonly rootOf: (reference: InstanceReference) => Promise<string>) {}

  async read(reference: InstanceReference, path: string): Promise<FileContent> {
    const { root, names } = await this.#find(reference, confinedNames(path));
    return inFolderOf(root, names, async (place) => {
      const handle = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      try {
        const stat = await handle.stat();
        if (!stat.isFile()) throw notAFile(typeOf(stat));
        return { byteLength: stat.size, content: handle.createReadStream() };
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  async write(reference: InstanceReference, path: string, content: Buffer): Promise<void> {
    const { root, names } = await this.#find(reference, confinedNames(path));
    if (names.length === 0) throw notAFile('folder');
    mustBeWritable(names);
    const write = async (place: string) => {
      const handle = await open(place, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
      try {
        if (!(await handle.stat()).isFile()) throw notAFile('other');
        await handle.truncate(0);
        await handle.writeFile(content);
      } finally {
        await handle.close();
      }
    };
    await inFolderOf(root, names, write, { makes: true });
  }

  async list(reference: InstanceReference, path: string, depth: number): Promise<readonly FileEntry[]> {
    const { root, names } = await this.#find(reference, confinedNames(path));
    const entries: FileEntry[] = [];
    await collect(root, names, depth, entries);
    return entries;
  }

  async remove(reference: InstanceReference, path: string): Promise<void> {
    const { folder, last } = removableNames(path);
    const { root, names } = await this.#find(reference, folder);
    mustBeRemovable([...names, last]);
    await inFolderOf(root, [...names, last], removeAt);
  }

  /** Returns the names of a folder with all links resolved; undefined if there is no such folder. @throws FileFailure */
  async findFolder(reference: InstanceReference, names: readonly string[]): Promise<readonly string[] | undefined> {
    const found = await this.#find(reference, names);
    const opened = await openFolder(found.root, found.names).catch(() => undefined);
    await opened?.close();
    return opened && found.names;
  }

  async #find(reference: InstanceReference, names: readonly string[]) {
    const root = await this.rootOf(reference);
    try {
      return { root, names: await follow(root, names) };
    } catch (error) {
      throw toFileFailure(error, names);
    }
  }
}

/**
 * Removes a path and everything in it. It opens each folder before it descends, so that none becomes a link meanwhile.
 * @throws ENOENT
 */
async function removeAt(place: string): Promise<void> {
  if (!(await lstat(place)).isDirectory()) return unlink(place);
  const folder = await openInside(place);
  try {
    for (const name of await readdir(folder.place)) await removeAt(join(folder.place, name)).catch(unlessMissing);
  } finally {
    await folder.close();
  }
  await rmdir(place);
}

/** Runs an action on a name within its opened folder. `.` stands for the root itself. */
function inFolderOf<T>(
  root: string,
  names: readonly string[],
  act: (place: string) => Promise<T>,
  options?: { readonly makes: boolean },
): Promise<T> {
  return inFolder(root, names.slice(0, -1), (folder) => act(join(folder, names.at(-1) ?? '.')), options);
}

async function inFolder<T>(
  root: string,
  names: readonly string[],
  act: (folder: string) => Promise<T>,
  options?: { readonly makes: boolean },
): Promise<T> {
  try {
    const folder = await openFolder(root, names, options);
    try {
      return await act(folder.place);
    } finally {
      await folder.close();
    }
  } catch (error) {
    throw toFileFailure(error, names);
  }
}

async function collect(root: string, names: readonly string[], depth: number, into: FileEntry[]): Promise<void> {
  const found = await inFolder(root, names, async (folder) => {
    const inside = (await readdir(folder)).sort().slice(0, LIST_LIMIT - into.length);
    return Promise.all(
      inside.map(async (name) => ({ name, stat: await lstat(join(folder, name)).catch(unlessMissing) })),
    );
  });
  for (const { name, stat } of found) {
    if (into.length === LIST_LIMIT) return;
    if (stat === undefined) continue;
    const path = ['', ...names, name].join('/');
    into.push({ path: shownPath(path), type: typeOf(stat), byteLength: stat.size, modifiedAt: stat.mtime });
    // A folder that is removed meanwhile is not listed further.
    if (stat.isDirectory() && depth > 1 && !isKernelFolder(path))
      await collect(root, [...names, name], depth - 1, into).catch(unlessGone);
  }
}

function typeOf(stat: Stats): FileEntry['type'] {
  return stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'other';
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw toFileFailure(error, []);
}

function unlessGone(error: unknown): void {
  if (!(error instanceof FileFailure)) throw error;
}

const REASONS: Readonly<Record<string, FileFailure['reason']>> = {
  ENOTDIR: 'not-folder',
  EISDIR: 'is-folder',
  ELOOP: 'path-invalid',
  ENOSPC: 'no-space',
  EDQUOT: 'no-space',
  EACCES: 'not-allowed',
  EPERM: 'not-allowed',
  ENXIO: 'not-allowed',
  EROFS: 'not-allowed',
  EBUSY: 'not-allowed',
  ETXTBSY: 'not-allowed',
  ENAMETOOLONG: 'path-invalid',
};

function toFileFailure(error: unknown, names: readonly string[]): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return notFound(names);
  const reason = REASONS[code];
  return reason === undefined ? error : new FileFailure(reason, `path: ${code}`);
}

export function gone({ name }: InstanceReference): InstanceGone {
  return new InstanceGone(`the instance ${name} does not exist`);
}
