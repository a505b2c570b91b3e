import { join } from 'node:path';
import type { TestGateway } from './gateway';
import { until } from './until';

/** The environment of a gateway whose turns a test measures. */
export const TURNS_PROBED: NodeJS.ProcessEnv = { NODE_OPTIONS: `--require ${join(__dirname, 'turn-probe.cjs')}` };

/** Returns the most CPU, in milliseconds, that the main thread took in one turn of the event loop since the last call. */
export async function longestTurnMs({ output, process: child }: TestGateway): Promise<number> {
  const reports = () => output().match(/^TURN .+$/gm) ?? [];
  const { length } = reports();
  child.kill('SIGUSR2');
  const report = await until('the probe reports', () => reports()[length]);
  return Number(report.slice('TURN '.length));
}
