import { join } from 'node:path';
import type { TestGateway } from './gateway';
import { until } from './until';

export interface Held {
  readonly heapBytes: number;
  /** The bytes of buffers outside the heap. */
  readonly bufferBytes: number;
  readonly handles: number;
  /** The number of entries in Express' own router. */
  readonly routes: number;
}

/** The environment of a gateway whose memory a test measures. */
export const PROBED: NodeJS.ProcessEnv = { NODE_OPTIONS: `--require ${join(__dirname, 'heap-probe.cjs')}` };

/** Returns the memory in use after garbage collection. The process's size would also depend on its collector. */
export async function held(gateway: TestGateway): Promise<Held> {
  const reports = () => gateway.output().match(/^HELD .+$/gm) ?? [];
  const { length } = reports();
  gateway.process.kill('SIGUSR2');
  const report = await until('the probe reports', () => reports()[length]);
  return JSON.parse(report.slice('HELD '.length)) as Held;
}
