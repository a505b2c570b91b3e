import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './programs';
import { until } from './until';

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Starts nginx in the foreground with this `http` block, in a temporary folder. Resolves when the port accepts connections. */
export async function startNginx(http: string, port: number): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-nginx-'));
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  ${TEMPORARY.map((each) => `${each}_temp_path ${folder}/${each};`).join('\n  ')}
  ${http}
}
`,
  );
  const child = spawn(findProgram('nginx'), ['-p', folder, '-e', 'stderr', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('nginx takes connections', async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${output}`);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket.destroy();
  });
  return {
    stop: async () => {
      const ended = once(child, 'exit');
      if (child.exitCode === null) {
        child.kill('SIGQUIT');
        setTimeout(() => child.kill('SIGTERM'), 2_000).unref();
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
