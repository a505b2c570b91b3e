import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { findProgram } from './programs';
import { PROJECT } from './sources';

const run = promisify(execFile);

/** The engine's report of a step, one JSON value a line. */
interface Step {
  readonly stream?: string;
  readonly error?: string;
}

/** Sends a tar to an engine that makes it an image. @throws with the engine's output when it fails */
async function send(socketPath: string, path: string, tarArguments: readonly string[]): Promise<void> {
  const tar = spawn('tar', ['-c', ...tarArguments], { stdio: ['ignore', 'pipe', 'inherit'] });
  const headers = { 'content-type': 'application/x-tar' };
  const answer = await new Promise<string>((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', path, headers, agent: false }, (response) =>
      text(response).then(response.statusCode === 200 ? resolve : (answer) => reject(new Error(answer)), reject),
    );
    call.once('error', reject);
    pipeline(tar.stdout, call).catch(reject);
  });
  const steps = answer
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as Step);
  if (steps.some(({ error }) => error !== undefined))
    throw new Error(steps.map(({ stream = '', error = '' }) => stream + error).join(''));
}

/** The busybox programs that the steps of a Dockerfile use. */
const APPLETS = ['sh', 'mkdir', 'chown', 'env'];

/** The folder of npm's cache in a base image. */
const CACHE = 'npm-cache';

/** Fills an npm cache with the production packages of the lock file, by installing them elsewhere. */
async function fillCache(cache: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-packages-'));
  try {
    for (const name of ['package.json', 'package-lock.json', 'vendor'])
      await cp(join(PROJECT, name), join(folder, name), { recursive: true });
    const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', `--cache=${cache}`];
    await run('npm', ['ci', ...options], { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Copies Node, npm and busybox of this machine into the root of an image. */
async function layPrograms(root: string): Promise<void> {
  for (const folder of ['bin', 'usr/bin', 'usr/lib/node_modules', 'tmp', 'root'])
    await mkdir(join(root, folder), { recursive: true });
  const { stdout } = await run('ldd', [process.execPath]);
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path ?? '');
  for (const library of libraries) await cp(await realpath(library), join(root, library));
  await cp(process.execPath, join(root, 'usr/bin/node'));
  const npm = (await run('npm', ['root', '--global'])).stdout.trim();
  await cp(join(npm, 'npm'), join(root, 'usr/lib/node_modules/npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'));
  await cp(findProgram('busybox'), join(root, 'bin/busybox'));
  for (const applet of APPLETS) await symlink('/bin/busybox', join(root, 'bin', applet));
  await symlink('/bin/env', join(root, 'usr/bin/env'));
}

/** Makes a base image. Its npm installs from a cache in the image, because the steps of a Dockerfile may have no registry. */
export async function importNodeBase(socket: string, name: string): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tollgate-base-'));
  try {
    await Promise.all([layPrograms(root), fillCache(join(root, CACHE))]);
    const [repository, tag] = name.split(':');
    const changes = encodeURIComponent(`ENV PATH=/usr/bin:/bin npm_config_cache=/${CACHE} npm_config_offline=true`);
    await send(socket, `/images/create?fromSrc=-&repo=${repository}&tag=${tag}&changes=${changes}`, ['-C', root, '.']);
  } finally {
    await rm(root, { recursive: true });
  }
}

/** Builds an image of the project by a Dockerfile, from the files that `.dockerignore` allows. */
export async function buildImage(socket: string, name: string, dockerfile: string, base: string): Promise<void> {
  const rules = (await readFile(`${PROJECT}/.dockerignore`, 'utf8')).split('\n').filter((line) => /^[^#]/.test(line));
  const [all, ...rest] = rules;
  if (all !== '*') throw new Error('.dockerignore does not begin with leaving everything out');
  const taken = rest.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1));
  const left = rest.filter((rule) => !rule.startsWith('!')).map((rule) => `--exclude=${rule.replace('**/', '')}`);
  const args = new URLSearchParams({
    dockerfile,
    t: name,
    networkmode: 'none',
    buildargs: JSON.stringify({ BASE: base }),
  });
  await send(socket, `/build?${args}`, ['-C', PROJECT, ...left, ...taken, dockerfile]);
}
