import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Pins the newest version of every package of test/agents/package.json, and rewrites the lock file. */
export function renewPins(): void {
  const path = join(__dirname, 'package.json');
  const pinned = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  for (const kind of ['dependencies', 'devDependencies']) {
    const entries = Object.entries(pinned[kind] as Record<string, string>).map(([name, version]) => {
      const newest = npm('view', name, 'version');
      if (newest !== version) process.stdout.write(`${name} ${version} → ${newest}\n`);
      return [name, newest];
    });
    pinned[kind] = Object.fromEntries(entries);
  }
  writeFileSync(path, `${JSON.stringify(pinned, null, 2)}\n`);
  npm('install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund');
  process.stdout.write('Run `npm run agents -- --write` next.\n');
}

function npm(...args: readonly string[]): string {
  return execFileSync('npm', args, { cwd: __dirname, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}
