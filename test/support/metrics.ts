import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import type { TestGateway } from './gateway';
import { findProgram } from './programs';

/** Returns the samples of `GET /metrics`, by their name and labels as the text has them. */
export async function readMetrics(gateway: Pick<TestGateway, 'admin'>): Promise<ReadonlyMap<string, number>> {
  const { text: shown } = await gateway.admin('GET', '/metrics');
  const samples = shown.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

/** Checks a text of metrics with Prometheus' own program. Returns its complaints, one a line. */
export async function faultsOf(metrics: string): Promise<readonly string[]> {
  const child = spawn(findProgram('promtool'), ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(metrics);
  const told = await Promise.all([text(child.stdout), text(child.stderr)]);
  return told
    .join('')
    .split('\n')
    .filter((line) => line !== '');
}

/** Returns the log lines with a message. */
export function linesOf({ output }: Pick<TestGateway, 'output'>, message: string): readonly Record<string, unknown>[] {
  const lines = output()
    .split('\n')
    .filter((line) => line.endsWith(`"msg":"${message}"}`));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}
