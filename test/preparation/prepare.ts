/**
 * `npm run prepare:tests`: installs everything that the tests start, in one go, and builds the server, before any test process starts. That includes
 * the agents, the generators of clients and the types of Kubernetes. `npm test` runs it first. `npm run bench` runs it with the argument `bench`.
 */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installAgents } from '../support/agents';
import { buildServer } from '../support/built-server';
import { installOwnPackage } from '../support/own-packages';
import { BENCH_PROGRAMS, lookForProgram, TEST_PROGRAMS } from '../support/programs';
import { type Machine, preparePrograms } from './needed-programs';
import { tell, timed } from './progress';
import { run } from './run';

const THIS_MACHINE: Machine = {
  has: (program) => lookForProgram(program) !== undefined,
  isRoot: process.getuid?.() === 0,
  hasAptGet: existsSync('/usr/bin/apt-get'),
  tell,
  install: (packages) => timed('apt-get', (report) => installPackages(packages, report)),
};

async function main(): Promise<void> {
  const isBench = process.argv[2] === 'bench';
  const begunMs = performance.now();
  process.stdout.write(`preparing the ${isBench ? 'benches' : 'tests'}\n`);
  await preparePrograms(isBench ? BENCH_PROGRAMS : TEST_PROGRAMS, THIS_MACHINE);
  if (!isBench) {
    await timed('agents', installAgents);
    await timed('clients', (report) => installOwnPackage('clients', report));
    await timed('manifests', (report) => installOwnPackage('manifests', report));
    await timed('server', buildServer);
  }
  process.stdout.write(`prepared in ${Math.round((performance.now() - begunMs) / 1_000)} s\n`);
}

/** Installs all packages in one call. Two preparations at a time wait for each other. */
async function installPackages(packages: readonly string[], report: (line: string) => void): Promise<void> {
  tell('apt-get', `installs ${packages.join(', ')}`);
  const lock = join(tmpdir(), 'tollgate-tests-install');
  const script = 'apt-get update -q && apt-get install -q -y --no-install-recommends "$@"';
  // RUNLEVEL=1 prevents the packages from starting their services.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  await run('flock', [lock, 'sh', '-c', script, 'sh', ...packages], { report, env });
}

main().catch((error: unknown) => {
  process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
