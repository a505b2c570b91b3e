import { existsSync } from 'node:fs';
import { cp, readdir, rm } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { PROTOCOLS } from '../../core/catalog/protocols';
import { run } from '../preparation/run';

const RECORDINGS = 'conformance/recordings/';

const PROJECT = resolve(__dirname, '../..');

/** Builds the server like `npm run build`, without the pages, and compiles only changed files. */
export async function buildServer(report: (line: string) => void = () => {}): Promise<string> {
  const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc');
  await removeStale();
  await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { report, cwd: PROJECT });
  await copyScripts('core/ledger/redis');
  await copyRecordings();
  await packDatabase(report);
  return join(PROJECT, 'dist/server.js');
}

/** Copies the Redis scripts beside the compiled modules that read them. */
async function copyScripts(folder: string): Promise<void> {
  const scripts = (await readdir(join(PROJECT, folder))).filter((name) => name.endsWith('.lua'));
  await Promise.all(scripts.map((name) => cp(join(PROJECT, folder, name), join(PROJECT, 'dist', folder, name))));
}

/** Makes the embedded database of a first start, unless it is there. */
async function packDatabase(report: (line: string) => void): Promise<void> {
  const program = join(PROJECT, 'dist/core/storage/first-database');
  if (existsSync(`${program}.gz`)) return;
  await run(process.execPath, ['-e', `require(${JSON.stringify(program)}).packFirstDatabase()`], { report });
}

/** Copies the samples of the conformance suite, one folder for each protocol. */
async function copyRecordings(): Promise<void> {
  const copies = Object.keys(PROTOCOLS).map((protocol) =>
    cp(join(PROJECT, 'test/fixtures', protocol), join(PROJECT, 'dist', RECORDINGS, protocol), { recursive: true }),
  );
  await Promise.all(copies);
}

/** Removes compiled files whose source is gone, because a folder could not replace a file of the same name. */
async function removeStale(): Promise<void> {
  const dist = join(PROJECT, 'dist');
  if (!existsSync(dist)) return;
  for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
    const path = relative(dist, join(entry.parentPath, entry.name));
    const source = path.replace(/(\.js(\.map)?|\.d\.ts)$/, '.ts');
    // Keeps pages and recordings, which have no TypeScript source.
    if (
      source === path ||
      path.startsWith('console/') ||
      path.startsWith('operator/') ||
      path.startsWith(RECORDINGS) ||
      existsSync(join(PROJECT, source))
    )
      continue;
    await rm(join(dist, path));
  }
}
