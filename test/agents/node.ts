import { execFileSync } from 'node:child_process';

/** The path of a Node 24, which the SDKs and Continue need. */
export function node24(): string {
  process.env['NODE_24'] ??= execFileSync('npx', ['--yes', '--package=node@24', 'node', '-p', 'process.execPath'], {
    encoding: 'utf8',
  }).trim();
  return process.env['NODE_24'];
}
