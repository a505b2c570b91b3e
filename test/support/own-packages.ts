import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from '../preparation/run';

/** npm writes this file last, so a broken installation is repeated. */
const INSTALLED = 'node_modules/.package-lock.json';
const WANTED = 'package-lock.json';

/** The programs are complete without their install scripts, which only link them. */
const INSTALL = 'npm ci --ignore-scripts --no-audit --no-fund';

/** The folders of `test` that are packages of their own, because the project does not depend on what they name. */
export type OwnPackage = 'agents' | 'clients';

/**
 * Installs what a package of its own names when its lock file is newer than what is installed. Processes that call it at once
 * wait for each other, and only the first of them installs.
 */
export async function installOwnPackage(
  name: OwnPackage,
  report: (line: string) => void = () => undefined,
): Promise<void> {
  const cwd = resolve(__dirname, '..', name);
  if (await isInstalled(cwd)) return;
  report(`npm ci in test/${name}`);
  await run('flock', [WANTED, 'sh', '-c', `[ ${INSTALLED} -nt ${WANTED} ] || ${INSTALL}`], { cwd, report });
}

async function isInstalled(folder: string): Promise<boolean> {
  const [installed, wanted] = await Promise.all(
    [INSTALLED, WANTED].map((path) => stat(join(folder, path)).catch(() => undefined)),
  );
  return installed !== undefined && wanted !== undefined && installed.mtimeMs > wanted.mtimeMs;
}
