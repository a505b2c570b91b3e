import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Every program that the tests start, with its Debian package. */
export const TEST_PROGRAMS: Readonly<Record<string, string>> = {
  'redis-server': 'redis-server',
  'redis-cli': 'redis-tools',
  postgres: 'postgresql',
  initdb: 'postgresql',
  dockerd: 'docker.io',
  containerd: 'containerd',
  runc: 'runc',
  busybox: 'busybox-static',
  bwrap: 'bubblewrap',
  chromium: 'chromium',
  cc: 'build-essential',
  curl: 'curl',
  openssl: 'openssl',
  nginx: 'nginx',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  'systemd-analyze': 'systemd',
};

/** Programs that the benches start in addition. */
export const BENCH_PROGRAMS: Readonly<Record<string, string>> = {
  'redis-server': 'redis-server',
  postgres: 'postgresql',
  initdb: 'postgresql',
  chromium: 'chromium',
  nginx: 'nginx',
  wrk: 'wrk',
};

/**
 * Returns the path of a program that the tests need. It installs nothing: that is done once, before any test process starts.
 *
 * @throws with the Debian package and the command that installs it.
 */
export function findProgram(name: string): string {
  const found = lookForProgram(name);
  if (found !== undefined) return found;
  const debianPackage = TEST_PROGRAMS[name] ?? BENCH_PROGRAMS[name] ?? name;
  throw new Error(
    `"${name}" is missing: run "npm run prepare:tests", or install it (on Debian: apt-get install ${debianPackage}) and have it on PATH`,
  );
}

/** Returns the path of a program, or undefined where the machine has none. */
export function lookForProgram(name: string): string | undefined {
  return searchPath()
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/** Lists the folders of programs. Debian keeps the Postgres server programs out of PATH. */
function searchPath(): string[] {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql').sort().reverse() : [];
  return [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...versions.map((version) => `/usr/lib/postgresql/${version}/bin`),
    '/usr/sbin',
  ];
}
