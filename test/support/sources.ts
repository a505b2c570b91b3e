import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';

/** The project's folder. */
export const PROJECT = dirname(dirname(__dirname));

/** Folders without sources of the project. */
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.tollgate']);

/** Lists the paths of files below a folder of the project, with `/`, sorted; empty if the folder does not exist. */
export function filesUnder(folder: string): readonly string[] {
  let found: string[] = [];
  try {
    for (const entry of readdirSync(join(PROJECT, folder), { withFileTypes: true })) {
      if (NOT_OURS.has(entry.name)) continue;
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) found = found.concat(filesUnder(path));
      else if (entry.isFile()) found.push(path);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return found.sort();
}

export function foldersIn(folder: string): readonly string[] {
  return readdirSync(join(PROJECT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

export function textOf(path: string): string {
  return readFileSync(join(PROJECT, path), 'utf8');
}

export interface Import {
  /** The import as it is written. */
  readonly from: string;
  /** The path of the imported file without extension, or undefined for a package. */
  readonly file: string | undefined;
  /** Whether it imports only types, which do not exist at run time. */
  readonly isTypeOnly: boolean;
}

const STATIC = /(?:^|;[ \t]*)(?:import|export)\s+(type\s+)?(?:[\w*\s{},$]*?\bfrom\s*)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\b(?:import|require)\(\s*['"]([^'"]+)['"]\s*\)/g;

/** Lists the imports of a source text at a path of the project. */
export function importsOf(path: string, text: string): readonly Import[] {
  const lines = [...text.matchAll(STATIC)].map(([whole, type, from]) => ({
    from: from ?? '',
    isTypeOnly: type !== undefined || hasOnlyTypes(whole),
  }));
  const calls = [...text.matchAll(DYNAMIC)].map(([, from]) => ({ from: from ?? '', isTypeOnly: false }));
  return [...lines, ...calls].map((each) => ({ ...each, file: fileOf(path, each.from) }));
}

/** Returns whether an import has the form `import { type A, type B } from …`. */
function hasOnlyTypes(line: string): boolean {
  const names = /\{([^}]*)\}/
    .exec(line)?.[1]
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return (
    names !== undefined &&
    names.length > 0 &&
    !/^import\s+\w+\s*,/.test(line) &&
    names.every((name) => name.startsWith('type '))
  );
}

function fileOf(path: string, from: string): string | undefined {
  if (!from.startsWith('.')) return undefined;
  return relative(PROJECT, join(PROJECT, dirname(path), from))
    .split(sep)
    .join('/');
}

/** Returns the file that an import refers to: itself, with `.ts` or `.tsx`, or the index of its folder. */
export function resolveIn(files: ReadonlySet<string>, file: string): string | undefined {
  const bare = file.replace(/\.[cm]?[jt]s$/, '');
  return [file, `${bare}.ts`, `${file}.ts`, `${file}.tsx`, posix.join(file, 'index.ts')].find((each) =>
    files.has(each),
  );
}
