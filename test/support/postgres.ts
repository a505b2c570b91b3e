import { execFile, spawn } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port';
import { findProgram } from './programs';
import { until } from './until';

const run = promisify(execFile);

export interface TestPostgres {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Makes a database on this server, empty or a copy of the unused one at this URL. Returns its URL. */
  createDatabase(copied?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a Postgres on a free loopback port, in a temporary folder. It never runs as root. */
export async function startPostgres(
  more: readonly string[] = [],
  initdbOptions: readonly string[] = ['--encoding=UTF8', '--locale=C'],
): Promise<TestPostgres> {
  const initdb = findProgram('initdb');
  const postgres = findProgram('postgres');
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-postgres-'));
  const owner = await unprivilegedUser();
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  await run(initdb, ['-D', data, '-U', 'tollgate', '--auth=trust', '--no-sync', ...initdbOptions], {
    cwd: folder,
    ...owner,
  });
  const port = await freePort();
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'fsync=off',
    'full_page_writes=off',
    // With a hundred databases it would start a process every second.
    'autovacuum=off',
    'max_connections=200',
    ...more,
  ];
  const child = spawn(postgres, ['-D', data, '-p', String(port), ...settings.flatMap((each) => ['-c', each])], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...owner,
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until(
    'postgres takes connections',
    () => {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${output}`);
      return output.includes('ready to accept connections');
    },
    30_000,
  );
  const server = `postgres://tollgate@127.0.0.1:${port}`;
  let databases = 0;
  return {
    url: `${server}/postgres`,
    port,
    pid: child.pid ?? 0,
    createDatabase: async (copied) => {
      const { Client } = await import('pg');
      const client = new Client({ connectionString: `${server}/postgres` });
      await client.connect();
      databases += 1;
      const name = `test_${databases}`;
      const template = copied === undefined ? '' : `TEMPLATE ${copied.slice(server.length + 1)}`;
      await client.query(`CREATE DATABASE ${name} ${template}`);
      await client.end();
      return `${server}/${name}`;
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((done) => child.once('exit', done));
        child.kill('SIGINT');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the user for Postgres, which refuses to run as root: its package's user or nobody. */
export async function unprivilegedUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const { stdout: uid } = await run('id', ['-u', name]);
      const { stdout: gid } = await run('id', ['-g', name]);
      return { uid: Number(uid), gid: Number(gid) };
    } catch {
      // Tries the next name.
    }
  }
  throw new Error('Postgres cannot run as root, and there is neither a user "postgres" nor "nobody"');
}
