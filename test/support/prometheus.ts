import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort } from './free-port';
import { findProgram } from './programs';
import { until } from './until';

/** The labels that a PodMonitor adds. */
export const POD = { namespace: 'default', pod: 'gateway-0' };

export interface TestPrometheus {
  /** Returns the number of series of a query. @throws with Prometheus' error if the query is invalid */
  series(query: string): Promise<number>;
  stop(): Promise<void>;
}

/** What a job of Prometheus sends as its Bearer token. */
type Authorization = { readonly credentials: string } | { readonly credentials_file: string };

/** Starts Prometheus from its Debian package, on a free loopback port. It scrapes one admin listener every second, as a pod's. */
export async function startPrometheus(target: string, authorization: Authorization): Promise<TestPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-prometheus-'));
  const file = join(folder, 'prometheus.yml');
  const job = { job_name: 'tollgate', authorization, static_configs: [{ targets: [target], labels: POD }] };
  await writeFile(file, stringify({ global: { scrape_interval: '1s' }, scrape_configs: [job] }));
  const address = `127.0.0.1:${await freePort()}`;
  const options = ['config.file', 'storage.tsdb.path', 'web.listen-address'];
  const values = [file, join(folder, 'data'), address];
  const child = spawn(
    findProgram('prometheus'),
    options.map((option, index) => `--${option}=${values[index]}`),
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until(
    'Prometheus is ready',
    async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended: ${output}`);
      return (await fetch(`http://${address}/-/ready`)).ok;
    },
    30_000,
  );
  return {
    series: async (query) => {
      const answer = await fetch(`http://${address}/api/v1/query?${new URLSearchParams({ query })}`);
      const { status, error, data } = (await answer.json()) as {
        status: string;
        error?: string;
        data?: { resultType: string; result: readonly unknown[] };
      };
      if (status !== 'success' || data === undefined) throw new Error(`${query}: ${error}`);
      return data.result.length;
    },
    stop: async () => {
      const ended = once(child, 'exit');
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
