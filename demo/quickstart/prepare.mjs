import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
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

function needsInstall(root) {
  // npm writes this file last, so an interrupted install is repeated.
  return modifiedAt(join(root, 'node_modules/.package-lock.json')) < modifiedAt(join(root, 'package-lock.json'));
}

function needsBuild(root) {
  const built = Math.min(modifiedAt(join(root, 'dist/server.js')), modifiedAt(join(root, 'dist/demo/upstream.js')));
  const top = readdirSync(root).filter((name) => name.endsWith('.ts') || /^(tsconfig.*|package)\.json$/.test(name));
  const folders = SOURCES.filter((name) => existsSync(join(root, name)));
  const inside = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
  );
  return [...top, ...inside].some((name) => modifiedAt(join(root, name)) >= built);
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

const DOCKER_SOCKET = '/var/run/docker.sock';
const IMAGE = 'busybox';
const FETCHED_WITHIN_MS = 60_000;

/** Returns the image for sandboxes at this machine's Docker engine and pulls it if it is missing; undefined without an engine. */
export async function findDockerImage({ DOCKER_SOCKET: socket = DOCKER_SOCKET }, say) {
  if (!existsSync(socket)) return undefined;
  try {
    if ((await ask(socket, 'GET', `/images/${IMAGE}/json`)) === 200) return IMAGE;
    say(`Fetching the Docker image ${IMAGE} …`);
    await ask(socket, 'POST', `/images/create?fromImage=${IMAGE}&tag=latest`);
    if ((await ask(socket, 'GET', `/images/${IMAGE}/json`)) === 200) return IMAGE;
    say(`No Docker sandboxes: the image ${IMAGE} could not be fetched.`);
  } catch (error) {
    say(`No Docker sandboxes: the engine at ${socket} cannot be used (${error.message}).`);
  }
  return undefined;
}

/** Returns the status once the whole answer is read. */
function ask(socketPath, method, path) {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(FETCHED_WITHIN_MS);
    const asked = request({ socketPath, method, path, agent: false, signal }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    });
    asked.once('error', reject);
    asked.end();
  });
}
