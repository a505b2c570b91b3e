import { cp, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from '../preparation/run';

const PROJECT = resolve(__dirname, '../..');

/** Builds the program that operators start as `npm run build` does, without the console's page, and only what has changed. */
export async function buildServer(report: (line: string) => void = () => {}): Promise<string> {
  const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { report, cwd: PROJECT });
  await copyScripts('core/ledger');
  return join(PROJECT, 'dist/server.js');
}

/** Redis' scripts stand beside the compiled modules that read them. */
async function copyScripts(folder: string): Promise<void> {
  const scripts = (await readdir(join(PROJECT, folder))).filter((name) => name.endsWith('.lua'));
  await Promise.all(scripts.map((name) => cp(join(PROJECT, folder, name), join(PROJECT, 'dist', folder, name))));
}
