const USAGE = `Usage: node dist/server.js [--check]

Starts Tollgate with gateway.config.yml and system.config.yml of TOLLGATE_CONFIG_DIR (default: the project's folder).
  --check  checks the configuration and exits
  --help   shows this help
`;

/** Returns whether `--check` is given. Prints the help and exits 0 with `--help`; exits 2 with anything unknown. */
export function readArguments(given: readonly string[]): boolean {
  if (given.length === 0) return false;
  if (given.length === 1 && given[0] === '--check') return true;
  if (given.length === 1 && given[0] === '--help') {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  process.stderr.write(`unknown argument ${given.join(' ')}.\n\n${USAGE}`);
  process.exit(2);
}
