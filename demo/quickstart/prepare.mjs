import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['core', 'policies', 'plugins', 'migrations', 'cli', 'console', 'demo'];

/** Installs and builds, each only if its result is missing or older than its sources. */
export async function prepare(root, say) {
  // A package installed by npm is complete and has no lock file.
  if (!existsSync(join(root, 'package-lock.json'))) return;
  if (needsInstall(root)) {
    say('Installing packages (npm ci) …');
    await npm(root, ['ci', '--no-audit', '--no-fund']);
  }
  if (needsBuild(root)) {
    say('Building (npm run build) …');
    await npm(root, ['run', 'build']);
  }
}

export function needsInstall(root) {
  // npm writes this file last, so an interrupted install is repeated.
  return modifiedAt(join(root, 'node_modules/.package-lock.json')) < modifiedAt(join(root, 'package-lock.json'));
}

export function needsBuild(root) {
  const built = Math.min(modifiedAt(join(root, 'dist/server.js')), modifiedAt(join(root, 'dist/demo/upstream.js')));
  return built <= newestSource(root);
}

function newestSource(root) {
  const top = readdirSync(root).filter((name) => name.endsWith('.ts') || /^(tsconfig.*|package)\.json$/.test(name));
  const times = top.map((name) => modifiedAt(join(root, name)));
  for (const folder of SOURCES) times.push(newestIn(join(root, folder)));
  return Math.max(...times);
}

function newestIn(folder) {
  if (!existsSync(folder)) return 0;
  let newest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    const path = join(folder, entry.name);
    newest = Math.max(newest, entry.isDirectory() ? newestIn(path) : modifiedAt(path));
  }
  return newest;
}

/** Returns when the file was modified; 0 if it is missing. */
function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function npm(root, words) {
  return new Promise((resolve, reject) => {
    // The output of npm is progress and not the result, so it goes to standard error.
    const child = spawn('npm', words, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
    child.once('error', (error) => reject(new Error(`npm cannot be run: ${error.message}`)));
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`npm ${words.join(' ')} failed; what it says stands above.`));
    });
  });
}
