const USAGE = `Usage: node dist/server.js [--check | --migrate]

Starts Tollgate with gateway.config.yml and system.config.yml of TOLLGATE_CONFIG_DIR (default: the project's folder).
  --check    checks the configuration and exits
  --migrate  migrates the database to this version and exits
  --help     shows this help
`;

/** Returns what the arguments ask the process to do. `--help` prints the help and exits 0; an unknown argument exits 2. */
export function readArguments(given: readonly string[]): 'serve' | 'check' | 'migrate' {
  if (given.length === 0) return 'serve';
  if (given.length === 1 && given[0] === '--check') return 'check';
  if (given.length === 1 && given[0] === '--migrate') return 'migrate';
  if (given.length === 1 && given[0] === '--help') {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  process.stderr.write(`unknown argument ${given.join(' ')}.\n\n${USAGE}`);
  process.exit(2);
}
