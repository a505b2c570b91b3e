import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { pack } from 'tar-stream';
import { findProgram } from './programs';
import { until } from './until';

/**
 * Removes the folder of a Docker engine that has ended. containerd and its shims may run slightly longer, and mounts below the folder longer still. A
 * folder with a mount in it cannot be removed.
 */
async function removeEngineFolder(folder: string): Promise<void> {
  await until('nothing of the engine runs', async () => (await processesOf(folder)).length === 0, 30_000);
  await unmountBelow(folder);
  await rm(folder, { recursive: true, force: true });
}

/** Lists the processes with the folder in their command line, as containerd and its shims have it. */
async function processesOf(folder: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => lines[index]?.includes(`${folder}/`));
}

/** Unmounts in reverse order, because a later mount may lie on an earlier one, even at the same place. */
async function unmountBelow(folder: string): Promise<void> {
  await until('nothing is mounted below the folder', async () => {
    // This unmount fails if the kernel has removed the mount meanwhile; the next list lacks it.
    for (const place of [...(await mountsBelow(folder))].reverse())
      await promisify(execFile)('umount', ['--lazy', place]);
    return true;
  });
}

/** Lists the mounts below a folder, in the order of mounting. */
async function mountsBelow(folder: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const places = lines.map((line) => unescaped(line.split(' ')[4] ?? ''));
  return places.filter((place) => place.startsWith(`${folder}/`));
}

/** Decodes the octal numbers by which the kernel writes spaces and similar characters. */
function unescaped(place: string): string {
  return place.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Names of containers, as `docker ps -a` shows them. */
type ContainerNames = readonly string[];

export interface DockerEngine {
  readonly socket: string;
  readonly pid: number;
  /** A busybox image with sh, find, grep, stat, nc and httpd. */
  readonly image: string;
  /** Lists every container of the engine, running or not. */
  containers(): Promise<ContainerNames>;
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
  /** Stops the engine's answers, while the containers keep running. */
  stall(): void;
  resume(): void;
}

export interface TestDocker extends DockerEngine {
  stop(): Promise<void>;
}

const IMAGE = 'tollgate-test:busybox';

/**
 * Starts a separate Docker engine in a temporary folder, as root. It does not change the machine's firewall or forwarding and makes no bridge; the
 * driver makes its network.
 */
export async function startDocker(): Promise<TestDocker> {
  for (const program of ['containerd', 'runc']) findProgram(program);
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-docker-'));
  const socket = join(folder, 'docker.sock');
  const child = spawn(findProgram('dockerd'), engineOptions(folder, socket), { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const engine = reachDocker({ socket, pid: child.pid ?? 0 });
  await until(
    'the Docker engine answers',
    async () => {
      if (child.exitCode !== null) throw new Error(`dockerd ended: ${output}`);
      return (await engine.ask('GET', '/_ping')).status === 200;
    },
    60_000,
  );
  await importImage(socket);
  return { ...engine, stop: () => stop(child, engine.ask, folder) };
}

/** Connects to a running engine, whichever process started it. */
export function reachDocker({ socket, pid }: Pick<DockerEngine, 'socket' | 'pid'>): DockerEngine {
  const ask: Ask = (method, path, body) => send(socket, method, path, body);
  return {
    socket,
    pid,
    image: IMAGE,
    ask,
    containers: async () => (await containersOf(ask)).flatMap(({ Names }) => Names.map((name) => name.slice(1))),
    stall: () => void process.kill(pid, 'SIGSTOP'),
    resume: () => void process.kill(pid, 'SIGCONT'),
  };
}

function engineOptions(folder: string, socket: string): string[] {
  return [
    ...['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid')],
    ...['--host', `unix://${socket}`, '--bridge=none', '--iptables=false', '--ip-forward=false', '--ip-masq=false'],
    '--shutdown-timeout=1',
  ];
}

type Ask = DockerEngine['ask'];

async function containersOf(ask: Ask): Promise<readonly { Id: string; Names: readonly string[] }[]> {
  return (await ask('GET', '/containers/json?all=1')).body as { Id: string; Names: readonly string[] }[];
}

/** Stops the engine after removing containers and networks, because it would leave bridges and mounts behind. */
async function stop(child: ChildProcess, ask: Ask, folder: string): Promise<void> {
  child.kill('SIGCONT');
  for (const { Id } of await containersOf(ask)) await ask('DELETE', `/containers/${Id}?force=1&v=1`);
  for (const { Id } of (await ask('GET', '/networks')).body as { Id: string }[]) await ask('DELETE', `/networks/${Id}`);
  const ended = new Promise((done) => child.once('exit', done));
  if (child.exitCode === null) {
    child.kill('SIGTERM');
    await ended;
  }
  await removeEngineFolder(folder);
}

/** Makes the image from Debian's statically linked busybox, so that nothing but a package is downloaded. */
async function importImage(socket: string): Promise<void> {
  const busybox = findProgram('busybox');
  const tar = pack();
  for (const name of ['bin', 'etc']) tar.entry({ name, type: 'directory', mode: 0o755 });
  tar.entry({ name: 'tmp', type: 'directory', mode: 0o1777 });
  tar.entry({ name: 'etc/passwd', mode: 0o644 }, 'sandbox:x:1000:1000::/workspace:/bin/sh\n');
  tar.entry({ name: 'bin/busybox', mode: 0o755 }, await readFile(busybox));
  const { stdout: applets } = await promisify(execFile)(busybox, ['--list']);
  for (const applet of applets
    .trim()
    .split('\n')
    .filter((name) => name !== 'busybox'))
    tar.entry({ name: `bin/${applet}`, type: 'symlink', linkname: 'busybox' });
  tar.finalize();
  const [repository, tag] = IMAGE.split(':');
  const answer = await send(
    socket,
    'POST',
    `/images/create?fromSrc=-&repo=${repository}&tag=${tag}`,
    Readable.from(tar),
  );
  if (answer.status !== 200) throw new Error(`the image could not be imported: ${JSON.stringify(answer.body)}`);
}

async function send(socketPath: string, method: string, path: string, body?: unknown) {
  return new Promise<{ status: number; body: unknown }>((resolve, reject) => {
    const type = body instanceof Readable ? 'application/x-tar' : 'application/json';
    const headers = body === undefined ? {} : { 'content-type': type };
    const call = request({ socketPath, method, path, headers, agent: false }, (response) => {
      const isJson = response.headers['content-type']?.startsWith('application/json') === true;
      const status = response.statusCode ?? 0;
      if (isJson) json(response).then((read) => resolve({ status, body: read }), reject);
      else response.resume().once('end', () => resolve({ status, body: undefined }));
    });
    call.once('error', reject);
    if (body instanceof Readable) pipeline(body, call).catch(reject);
    else call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
