import { type FileEntry, FileFailure, WORK_FOLDER } from '../../../core/supplier';

/** As Linux has them. */
const LONGEST_PATH = 4_095;
const LONGEST_NAME = 255;

/**
 * The names on the way from the instance's folder to what a customer's path says; none of them leads up. Links are still
 * to be looked at, on the spot. @throws FileFailure
 */
export function confinedNames(path: string): readonly string[] {
  if (path.includes('\0')) throw invalid('it holds a NUL character');
  if (Buffer.byteLength(path) > LONGEST_PATH) throw invalid(`it has more than ${LONGEST_PATH} bytes`);
  const names = relativeTo(WORK_FOLDER, path)
    .split('/')
    .filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw invalid('".." is not allowed');
  if (names.some((name) => Buffer.byteLength(name) > LONGEST_NAME)) throw invalid('a name in it is too long');
  return names;
}

/** The same for what is to be removed, with its own name apart: a link itself is removed, and so not followed. @throws FileFailure */
export function removableNames(path: string): { readonly folder: readonly string[]; readonly last: string } {
  const names = confinedNames(path);
  const last = names.at(-1);
  if (last === undefined) throw new FileFailure('not-allowed', "the instance's own folder cannot be removed");
  return { folder: names.slice(0, -1), last };
}

/** What is left of an absolute path below a folder; a relative path as it is. @throws FileFailure when it lies elsewhere. */
export function relativeTo(folder: string, path: string): string {
  if (!path.startsWith('/') || path === folder) return path === folder ? '' : path;
  if (path.startsWith(`${folder}/`)) return path.slice(folder.length + 1);
  throw leadsOut();
}

export function leadsOut(): FileFailure {
  return invalid("it leads out of the instance's folder");
}

function invalid(why: string): FileFailure {
  return new FileFailure('path-invalid', `path: ${why}`);
}

export function notFound(names: readonly string[]): FileFailure {
  return new FileFailure('not-found', `there is nothing at ${names.join('/') || '.'}`);
}

export function notAFile(type: FileEntry['type']): FileFailure {
  return type === 'folder'
    ? new FileFailure('is-folder', 'this is a folder')
    : new FileFailure('not-allowed', 'this is neither a file nor a folder');
}
