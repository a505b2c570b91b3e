import { execFile } from 'node:child_process';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtServer } from './shared';
import { PROJECT } from './sources';

const run = promisify(execFile);

/**
 * Makes the package with `npm pack`, from the project's copy `copy` in the folder, because its script changes `node_modules`. It includes the console
 * only if it was built. Returns the tarball's path.
 */
export async function packPackage(folder: string): Promise<string> {
  await builtServer();
  const copy = join(folder, 'copy');
  await mkdir(copy, { recursive: true });
  const { files } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8')) as { files: string[] };
  const tops = new Set(files.filter((name) => !name.startsWith('!')).map((name) => name.split('/')[0] ?? ''));
  for (const name of [...tops, 'package.json', 'package-lock.json', 'vendor', 'README.md', 'LICENSE'])
    await cp(join(PROJECT, name), join(copy, name), { recursive: true });
  // Makes hard links, because a copy is slow. The script replaces the files that it changes.
  await run('cp', ['-al', join(PROJECT, 'node_modules'), join(copy, 'node_modules')]);
  await run(process.execPath, ['vendor/settle-overrides.mjs'], { cwd: copy });
  const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { stdout } = await run('npm', pack, { cwd: copy, maxBuffer: 64 * 1024 * 1024 });
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  return join(folder, packed?.filename ?? '');
}
