import { join } from 'node:path';
import type { TestGateway } from './gateway';
import { until } from './until';

export interface Held {
  readonly heapBytes: number;
  /** What buffers hold outside the heap. */
  readonly bufferBytes: number;
  readonly handles: number;
  /** Entries of Express' own router. */
  readonly routes: number;
}

/** What a gateway whose memory is looked at is started with. */
export const PROBED: NodeJS.ProcessEnv = { NODE_OPTIONS: `--require ${join(__dirname, 'heap-probe.cjs')}` };

/** What the process holds after its garbage is collected; the memory it has from the system says as much about its collector. */
export async function held(gateway: TestGateway): Promise<Held> {
  const reports = () => gateway.output().match(/^HELD .+$/gm) ?? [];
  const { length } = reports();
  gateway.process.kill('SIGUSR2');
  const report = await until('the probe reports', () => reports()[length]);
  return JSON.parse(report.slice('HELD '.length)) as Held;
}
