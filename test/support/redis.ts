import { spawn } from 'node:child_process';
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
  stop(): Promise<void>;
}

/** A Redis of our own on a free loopback port, in a temporary folder. */
export async function startRedis(options: readonly string[] = []): Promise<TestRedis> {
  const program = findProgram('redis-server');
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
  const port = await freePort();
  const child = spawn(
    program,
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...options],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('redis-server takes connections', () => {
    if (child.exitCode !== null) throw new Error(`redis-server ended: ${output}`);
    return output.includes('Ready to accept connections');
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((done) => child.once('exit', done));
        child.kill('SIGKILL');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
