/** Describes the machine that produced a table, because the measurements mean nothing without it. */
import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { findProgram } from '../test/support/programs';
import { PROJECT_FOLDER } from './rig';

export interface Machine {
  readonly cores: number;
  readonly model: string;
  readonly memoryGb: number;
  readonly kernel: string;
}

export function describeMachine(): Machine {
  return {
    cores: cpus().length,
    model: cpus()[0]?.model ?? 'unknown',
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
  };
}

export function describeVersions(node: string): Record<string, string> {
  return {
    node: said(node, ['--version']).replace(/^v/, ''),
    redis: first(/v=([\d.]+)/, said(findProgram('redis-server'), ['--version'])),
    postgres: first(/([\d.]+)/, said(findProgram('postgres'), ['--version'])),
    nginx: first(/nginx\/([\d.]+)/, said(findProgram('nginx'), ['-v'])),
    wrk: first(/wrk (?:debian\/)?([\d.]+)/, said(findProgram('wrk'), ['--version'])),
    tollgate: said('git', ['-C', PROJECT_FOLDER, 'describe', '--always', '--dirty']),
  };
}

/** Returns what a program prints to stdout and stderr when it is started to print its version. Ignores the exit status. */
function said(file: string, args: readonly string[]): string {
  try {
    return execFileSync('sh', ['-c', '"$0" "$@" 2>&1 || true', file, ...args], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

function first(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[1] ?? 'unknown';
}
