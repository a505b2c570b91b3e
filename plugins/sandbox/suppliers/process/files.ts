import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rmdir, unlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import {
  type FileContent,
  type FileEntry,
  FileFailure,
  InstanceGone,
  type InstanceReference,
  LIST_LIMIT,
  type SupplierFiles,
  WORK_FOLDER,
} from '../../../../core/supplier';
import { confinedNames, leadsOut, notAFile, notFound, relativeTo, removableNames } from '../confined-path';

const MOST_LINKS = 40;

/**
 * Files of a folder on this machine. Somebody inside may turn a folder into a link between a look and the act, so every
 * act goes through an opened folder whose place is looked at once more.
 */
export class FolderFiles implements SupplierFiles {
  constructor(private readonly rootOf: (reference: InstanceReference) => Promise<string>) {}

  async read(reference: InstanceReference, path: string): Promise<FileContent> {
    const root = await this.rootOf(reference);
    const names = await follow(root, confinedNames(path));
    return inFolderOf(root, names, async (place) => {
      const handle = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
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
    const root = await this.rootOf(reference);
    const names = await follow(root, confinedNames(path));
    if (names.length === 0) throw notAFile('folder');
    await makeFolders(root, names.slice(0, -1));
    await inFolderOf(root, names, async (place) => {
      const { O_WRONLY, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
      const handle = await open(place, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o644);
      try {
        if (!(await handle.stat()).isFile()) throw notAFile('other');
        await handle.truncate(0);
        await handle.writeFile(content);
      } finally {
        await handle.close();
      }
    });
  }

  async list(reference: InstanceReference, path: string, depth: number): Promise<readonly FileEntry[]> {
    const root = await this.rootOf(reference);
    const names = await follow(root, confinedNames(path));
    const entries: FileEntry[] = [];
    await collect(root, names, depth, entries);
    return entries;
  }

  async remove(reference: InstanceReference, path: string): Promise<void> {
    const root = await this.rootOf(reference);
    const { folder, last } = removableNames(path);
    const target = [...(await follow(root, folder)), last];
    await inFolderOf(root, target, removeAt);
  }
}

/** Goes down through folders that were opened, so that none becomes a link on the way. @throws ENOENT */
async function removeAt(place: string): Promise<void> {
  if (!(await lstat(place)).isDirectory()) return unlink(place);
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const handle = await open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    const opened = `/proc/self/fd/${handle.fd}`;
    const folder = (await readlink(opened).catch(() => undefined)) === undefined ? place : opened;
    for (const name of await readdir(folder)) await removeAt(join(folder, name)).catch(unlessMissing);
  } finally {
    await handle.close();
  }
  await rmdir(place);
}

/** The same place without links. What is not there is left as it was said. */
async function follow(root: string, names: readonly string[], links = 0): Promise<readonly string[]> {
  for (const [index] of names.entries()) {
    const known = names.slice(0, index + 1);
    const stat = await lstat(join(root, ...known)).catch(unlessMissing);
    if (stat === undefined) return names;
    if (!stat.isSymbolicLink()) continue;
    if (links === MOST_LINKS) throw new FileFailure('path-invalid', 'path: too many links');
    const target = await readlink(join(root, ...known));
    const led = posix.resolve(WORK_FOLDER, ...known.slice(0, -1), target);
    const inside = led.startsWith(`${root}/`) ? relativeTo(root, led) : relativeTo(WORK_FOLDER, led);
    return follow(root, [...confinedNames(inside), ...names.slice(index + 1)], links + 1);
  }
  return names;
}

/** Opens the folder a name is in, makes sure that it lies where it was said, and acts through it. */
function inFolderOf<T>(root: string, names: readonly string[], act: (place: string) => Promise<T>): Promise<T> {
  return inFolder(root, names.slice(0, -1), (folder) => act(join(folder, names.at(-1) ?? '.')));
}

async function inFolder<T>(root: string, names: readonly string[], act: (folder: string) => Promise<T>): Promise<T> {
  const folder = join(root, ...names);
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
    if (opened !== undefined && opened !== folder) throw leadsOut();
    // Without /proc there is no way to act through what was opened, nor namespaces to hold anybody in.
    return await act(opened === undefined ? folder : `/proc/self/fd/${handle.fd}`);
  } catch (error) {
    throw toFileFailure(error, names);
  } finally {
    await handle?.close();
  }
}

async function makeFolders(root: string, names: readonly string[]): Promise<void> {
  for (const [index] of names.entries()) {
    await inFolderOf(root, names.slice(0, index + 1), async (place) => {
      await mkdir(place).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
    });
  }
}

async function collect(root: string, names: readonly string[], depth: number, into: FileEntry[]): Promise<void> {
  const found = await inFolder(root, names, async (folder) => {
    const inside = (await readdir(folder)).sort().slice(0, LIST_LIMIT - into.length);
    const entries = await Promise.all(inside.map((name) => entryOf(folder, names, name)));
    return entries.filter((each) => each !== undefined);
  });
  for (const entry of found) {
    if (into.length === LIST_LIMIT) return;
    into.push(entry);
    // A folder that is removed meanwhile is not listed further.
    if (entry.type === 'folder' && depth > 1)
      await collect(root, entry.path.split('/'), depth - 1, into).catch(unlessGone);
  }
}

async function entryOf(folder: string, names: readonly string[], name: string): Promise<FileEntry | undefined> {
  const stat = await lstat(join(folder, name)).catch(unlessMissing);
  if (stat === undefined) return undefined;
  return { path: [...names, name].join('/'), type: typeOf(stat), byteLength: stat.size, modifiedAt: stat.mtime };
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
};

function toFileFailure(error: unknown, names: readonly string[]): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return notFound(names);
  const reason = REASONS[code];
  return reason === undefined ? error : new FileFailure(reason, `path: ${code}`);
}

export function gone({ name }: InstanceReference): InstanceGone {
  return new InstanceGone(`there is no instance ${name}`);
}
