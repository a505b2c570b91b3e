import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from '../preparation/run';

/** The file that npm writes last, so that an interrupted installation is repeated. */
const INSTALLED = 'node_modules/.package-lock.json';
const WANTED = 'package-lock.json';

/**
 * Skips install scripts, which only link the programs. `npm ci` would refuse a lock file without the optional packages of all platforms, and not
 * every registry has them.
 */
const INSTALL = 'npm install --no-save --ignore-scripts --no-audit --no-fund';

/** The folders of `test` that are separate packages, because the project does not depend on their packages. */
type OwnPackage = 'agents' | 'clients' | 'manifests';

/** The dependencies to install: those that `npm test` needs are `dependencies`; `all` adds the `devDependencies`. */
export type Extent = 'tests' | 'all';

/** Installs the dependencies of such a package if its lock file has other versions than are installed. Simultaneous callers wait for each other. */
export async function installOwnPackage(
  name: OwnPackage,
  report: (line: string) => void = () => undefined,
  extent: Extent = 'tests',
): Promise<void> {
  const cwd = resolve(__dirname, '..', name);
  if (await isInstalled(cwd, extent)) return;
  report(`npm install in test/${name}`);
  await run('flock', [WANTED, 'sh', '-c', extent === 'all' ? INSTALL : `${INSTALL} --omit=dev`], { cwd, report });
}

interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

interface Locked {
  readonly version?: string;
  readonly dev?: boolean;
  /** Whether only some platforms have it. */
  readonly optional?: boolean;
}

async function isInstalled(folder: string, extent: Extent): Promise<boolean> {
  const [installed, wanted] = await Promise.all([INSTALLED, WANTED].map((path) => readLock(join(folder, path))));
  if (installed === undefined || wanted === undefined) return false;
  return Object.entries(wanted.packages).every(([path, { version, dev = false, optional = false }]) => {
    if (path === '' || optional || (dev && extent === 'tests')) return true;
    return installed.packages[path]?.version === version;
  });
}

async function readLock(path: string): Promise<Lock | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Lock);
}
