import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';

/** The project's folder. */
export const PROJECT = dirname(dirname(__dirname));

/** Folders that hold nothing of ours. */
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.tollgate']);

/** Paths of the files below a folder of the project, with `/`, sorted; empty when it is not there. */
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
  /** As it is written. */
  readonly from: string;
  /** Path of the file it means, without extension, or undefined for a package. */
  readonly file: string | undefined;
  /** Only types come in; nothing of it is left when the program runs. */
  readonly isTypeOnly: boolean;
}

const STATIC = /(?:^|;[ \t]*)(?:import|export)\s+(type\s+)?(?:[\w*\s{},$]*?\bfrom\s*)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\b(?:import|require)\(\s*['"]([^'"]+)['"]\s*\)/g;

/** The import lines of a source text at a path of the project. */
export function importsOf(path: string, text: string): readonly Import[] {
  const lines = [...text.matchAll(STATIC)].map(([whole, type, from]) => ({
    from: from ?? '',
    isTypeOnly: type !== undefined || hasOnlyTypes(whole),
  }));
  const calls = [...text.matchAll(DYNAMIC)].map(([, from]) => ({ from: from ?? '', isTypeOnly: false }));
  return [...lines, ...calls].map((each) => ({ ...each, file: fileOf(path, each.from) }));
}

/** `import { type A, type B } from …` */
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

/** The known file an import means: itself, with `.ts` or `.tsx`, or its folder's index. */
export function resolveIn(files: ReadonlySet<string>, file: string): string | undefined {
  const bare = file.replace(/\.[cm]?[jt]s$/, '');
  return [file, `${bare}.ts`, `${file}.ts`, `${file}.tsx`, posix.join(file, 'index.ts')].find((each) =>
    files.has(each),
  );
}
