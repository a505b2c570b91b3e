import { existsSync } from 'node:fs';
import { cp, readdir, rm } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { PROTOCOLS } from '../../core/catalog/protocols';
import { run } from '../preparation/run';

const RECORDINGS = 'conformance/recordings/';

const PROJECT = resolve(__dirname, '../..');

/** Builds the program that operators start as `npm run build` does, without the pages, and only what has changed. */
export async function buildServer(report: (line: string) => void = () => {}): Promise<string> {
  const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc');
  await removeStale();
  await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { report, cwd: PROJECT });
  await copyScripts('core/ledger/redis');
  await copyRecordings();
  return join(PROJECT, 'dist/server.js');
}

/** Redis' scripts stand beside the compiled modules that read them. */
async function copyScripts(folder: string): Promise<void> {
  const scripts = (await readdir(join(PROJECT, folder))).filter((name) => name.endsWith('.lua'));
  await Promise.all(scripts.map((name) => cp(join(PROJECT, folder, name), join(PROJECT, 'dist', folder, name))));
}

/** The samples of the conformance suite, one folder for each protocol. */
async function copyRecordings(): Promise<void> {
  const copies = Object.keys(PROTOCOLS).map((protocol) =>
    cp(join(PROJECT, 'test/fixtures', protocol), join(PROJECT, 'dist', RECORDINGS, protocol), { recursive: true }),
  );
  await Promise.all(copies);
}

/** Removes what was compiled from files that are gone: a folder that took the place of a file would not be found beside it. */
async function removeStale(): Promise<void> {
  const dist = join(PROJECT, 'dist');
  if (!existsSync(dist)) return;
  for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
    const path = relative(dist, join(entry.parentPath, entry.name));
    const source = path.replace(/(\.js(\.map)?|\.d\.ts)$/, '.ts');
    // Pages are built by themselves, and recordings are copied.
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
