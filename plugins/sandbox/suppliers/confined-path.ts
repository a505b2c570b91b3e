import { type FileEntry, FileFailure, WORK_FOLDER } from './supplier';

/** As Linux has them. */
const LONGEST_PATH = 4_095;
const LONGEST_NAME = 255;

/** Folders the kernel fills. Their entries act on processes and devices, so the files API neither reads nor writes them. */
const KERNEL_FOLDERS = ['proc', 'sys', 'dev'];

/** Folders of the programs that start, stop and show a customer's commands. Everybody reads them, and nobody writes. */
const SYSTEM_FOLDERS = ['etc', 'usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64'];

/** Folders that every instance has. */
const KEPT_FOLDERS = ['/', WORK_FOLDER, '/tmp'];

/**
 * Returns the names on the way from the instance's root to what a customer's path says. A relative path begins in the work
 * folder. No name leads up; links are still to be followed, inside that root. @throws FileFailure
 */
export function confinedNames(path: string): readonly string[] {
  if (path.includes('\0')) throw invalid('it holds a NUL character');
  if (Buffer.byteLength(path) > LONGEST_PATH) throw invalid(`it has more than ${LONGEST_PATH} bytes`);
  const names = absolutePath(path)
    .split('/')
    .filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw invalid('".." is not allowed in a path');
  if (names.some((name) => Buffer.byteLength(name) > LONGEST_NAME)) throw invalid('a name in it is too long');
  if (KERNEL_FOLDERS.includes(names[0] ?? '')) throw invalid(`/${names[0]} belongs to the kernel and cannot be used`);
  return names;
}

/** Returns the same for what is to be removed, with its own name apart: a link itself is removed, and so not followed. @throws FileFailure */
export function removableNames(path: string): { readonly folder: readonly string[]; readonly last: string } {
  const names = confinedNames(path);
  const last = names.at(-1);
  if (last === undefined) throw isKept();
  return { folder: names.slice(0, -1), last };
}

/** Checks names without links before something is written or removed there. @throws FileFailure */
export function mustBeWritable(names: readonly string[]): void {
  if (SYSTEM_FOLDERS.includes(names[0] ?? '')) throw new FileFailure('not-allowed', `/${names[0]} is read-only`);
}

/** @throws FileFailure */
export function mustBeRemovable(names: readonly string[]): void {
  mustBeWritable(names);
  if (KEPT_FOLDERS.includes(`/${names.join('/')}`)) throw isKept();
}

function isKept(): FileFailure {
  return new FileFailure('not-allowed', 'this folder is part of every instance and cannot be removed');
}

/** Returns a path as the instance itself sees it; a relative one begins in the work folder. */
export function absolutePath(path: string): string {
  return path.startsWith('/') ? path : `${WORK_FOLDER}/${path}`;
}

/** Returns how a list shows an absolute path: relative below the work folder, and whole elsewhere. */
export function shownPath(path: string): string {
  return path.startsWith(`${WORK_FOLDER}/`) ? path.slice(WORK_FOLDER.length + 1) : path;
}

/** Tells whether a list goes into a folder at this absolute path. */
export function isKernelFolder(path: string): boolean {
  return KERNEL_FOLDERS.some((name) => path === `/${name}`);
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
