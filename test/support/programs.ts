import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const DEBIAN_PACKAGES: Readonly<Record<string, string>> = {
  'redis-server': 'redis-server',
  'redis-cli': 'redis-tools',
  postgres: 'postgresql',
  initdb: 'postgresql',
  pg_ctl: 'postgresql',
  dockerd: 'docker.io',
  containerd: 'docker.io',
  runc: 'docker.io',
  busybox: 'busybox-static',
  bwrap: 'bubblewrap',
  chromium: 'chromium',
  cc: 'build-essential',
};

/** Finds a program the tests need; on Debian, as root, installs its package when it is missing. */
export function findProgram(name: string): string {
  const found = look(name);
  if (found !== undefined) return found;
  const debianPackage = DEBIAN_PACKAGES[name] ?? name;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    install(debianPackage);
    const installed = look(name);
    if (installed !== undefined) return installed;
  }
  throw new Error(
    `the tests need "${name}": install it (on Debian: apt-get install ${debianPackage}) and have it on PATH`,
  );
}

function look(name: string): string | undefined {
  return searchPath()
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/** Debian keeps the Postgres server programs off PATH. */
function searchPath(): string[] {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort().reverse() : [];
  return [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...versions.map((version) => `/usr/lib/postgresql/${version}/bin`),
    '/usr/sbin',
  ];
}

function install(debianPackage: string): void {
  process.stderr.write(`installing ${debianPackage} for the tests\n`);
  // A policy file keeps the package from starting a service of its own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  // Test files run side by side, and dpkg for one at a time.
  const script = 'apt-get update -qq && apt-get install -qq -y --no-install-recommends "$1"';
  execFileSync('flock', [join(tmpdir(), 'tollgate-tests-install'), 'sh', '-c', script, 'sh', debianPackage], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
