import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port';
import { findProgram } from './programs';
import { until } from './until';

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends the server with SIGKILL; `start` starts it again on the same port and folder. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a Redis on a free loopback port, in a temporary folder. `password` is the one that its options set. */
export async function startRedis(options: readonly string[] = [], password = ''): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...options];
  let child = await launch(args);
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await ended;
  };
  return {
    url: `redis://${password === '' ? '' : `:${password}@`}127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    kill,
    start: async () => {
      child = await launch(args);
    },
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function launch(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(findProgram('redis-server'), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('redis-server takes connections', () => {
    if (child.exitCode !== null) throw new Error(`redis-server ended: ${output}`);
    return output.includes('Ready to accept connections');
  });
  return child;
}
