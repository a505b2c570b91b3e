import { type FileEntry, FileFailure, WORK_FOLDER } from './supplier';

/** The limits of Linux for a path and for a name, in bytes. */
const MAX_PATH_LENGTH = 4_095;
const MAX_NAME_LENGTH = 255;

/** Folders that the kernel fills. Their entries act on processes and devices, so the files API neither reads nor writes them. */
const KERNEL_FOLDERS = ['proc', 'sys', 'dev'];

/** Folders of the programs that start, stop and show a customer's commands. The files API reads them and never writes them. */
const SYSTEM_FOLDERS = ['etc', 'usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64'];

/** Folders that every instance needs, so that they cannot be removed. */
const KEPT_FOLDERS = ['/', WORK_FOLDER, '/tmp'];

/**
 * Returns the names from the instance's root down to a customer's path. A relative path begins in the work folder. It rejects
 * `..`; the caller must still resolve links inside that root.
 * @throws FileFailure
 */
export function confinedNames(path: string): readonly string[] {
  if (path.includes('\0')) throw invalid('it holds a NUL character');
  if (Buffer.byteLength(path) > MAX_PATH_LENGTH) throw invalid(`it has more than ${MAX_PATH_LENGTH} bytes`);
  const names = absolutePath(path)
    .split('/')
    .filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw invalid('".." is not allowed in a path');
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_LENGTH)) throw invalid('a name in it is too long');
  if (KERNEL_FOLDERS.includes(names[0] ?? '')) throw invalid(`/${names[0]} belongs to the kernel and cannot be used`);
  return names;
}

/**
 * Returns the names of a path to remove: `folder` has all but the last name, and `last` has the last one. If the last name is a link, the
 * link itself is removed and therefore not followed.
 * @throws FileFailure
 */
export function removableNames(path: string): { readonly folder: readonly string[]; readonly last: string } {
  const names = confinedNames(path);
  const last = names.at(-1);
  if (last === undefined) throw isKept();
  return { folder: names.slice(0, -1), last };
}

/** Rejects a path below a system folder, which the files API may not write or remove. The names must be resolved (no links). @throws FileFailure */
export function mustBeWritable(names: readonly string[]): void {
  if (SYSTEM_FOLDERS.includes(names[0] ?? '')) throw new FileFailure('not-allowed', `/${names[0]} is read-only`);
}

/** Rejects a path that may not be removed. @throws FileFailure */
export function mustBeRemovable(names: readonly string[]): void {
  mustBeWritable(names);
  if (KEPT_FOLDERS.includes(`/${names.join('/')}`)) throw isKept();
}

function isKept(): FileFailure {
  return new FileFailure('not-allowed', 'this folder is part of every instance and cannot be removed');
}

/** Returns a path as the instance itself sees it. A relative one begins in the work folder. */
export function absolutePath(path: string): string {
  return path.startsWith('/') ? path : `${WORK_FOLDER}/${path}`;
}

/** Returns an absolute path as lists of files show it: relative to the work folder if it is inside that folder, otherwise unchanged. */
export function shownPath(path: string): string {
  return path.startsWith(`${WORK_FOLDER}/`) ? path.slice(WORK_FOLDER.length + 1) : path;
}

function invalid(why: string): FileFailure {
  return new FileFailure('path-invalid', `path: ${why}`);
}

export function tooManyLinks(): FileFailure {
  return invalid('the path has too many symbolic links');
}

export function notFound(names: readonly string[]): FileFailure {
  return new FileFailure('not-found', `there is nothing at ${shownPath(['', ...names].join('/')) || '/'}`);
}

export function notAFile(type: FileEntry['type']): FileFailure {
  return type === 'folder'
    ? new FileFailure('is-folder', 'this is a folder')
    : new FileFailure('not-allowed', 'this is neither a file nor a folder');
}
