/** Returns the address of the archive for a release, from lines of `address codename release component` that apt prints. */
export function archiveFor(codename: string, targets: string): string | undefined {
  return targets
    .split('\n')
    .map((line) => line.split(' '))
    .find(
      ([address, ...names]) =>
        /^(https?|file):/.test(address ?? '') && names.at(-1) === 'main' && names.slice(0, -1).includes(codename),
    )?.[0];
}

/** Returns the proxy for HTTP that apt uses, from `apt-config dump`. */
export function httpProxyIn(dump: string): string | undefined {
  return /^Acquire::http::Proxy "(.+)";$/m.exec(dump)?.[1];
}

/** Returns the lines of `apt-config dump` that say how apt reaches its sources; others can name programs a bare machine lacks. */
export function acquireLines(dump: string): string {
  return dump
    .split('\n')
    .filter((line) => line.startsWith('Acquire::'))
    .map((line) => `${line}\n`)
    .join('');
}
