import type { Server } from 'node:http';
import { log } from '../base/log';
import { safeErrorFields } from '../base/safe-error';
import { EXIT_CONFIGURATION, StartFailure } from '../base/start-failure';
import type { Configuration } from '../configuration/configuration';
import { ConfigurationError } from '../configuration/yaml-file';

/** The facts about a serving process that its log shows. */
export type Facts = Readonly<Record<string, unknown>>;

/** Returns what this process serves, with which configuration and which stores. */
export function factsOf(
  servers: { http: Server; admin: Server },
  configuration: Configuration,
  isEmbedded: boolean,
  tokenFile: string | undefined,
): Facts {
  const { upstreams } = configuration.catalog;
  const { https, admin } = configuration.gateway;
  return {
    public: addressOf(servers.http, https !== undefined),
    admin: addressOf(servers.admin, admin.tls !== undefined),
    revision: configuration.revision,
    ...(configuration.number !== undefined && { number: configuration.number }),
    stores: isEmbedded ? 'embedded' : 'Redis and Postgres',
    ...(tokenFile === undefined ? {} : { adminTokenFile: tokenFile }),
    upstreams: upstreams.filter(({ disabled }) => disabled === undefined).map(({ name }) => name),
    disabled: Object.fromEntries(
      upstreams.filter(({ disabled }) => disabled !== undefined).map(({ name, disabled }) => [name, disabled]),
    ),
  };
}

/** Logs that the process is ready, and what embedded stores cannot guarantee. */
export function announce(facts: Facts, isEmbedded: boolean): void {
  log.info(facts, 'ready');
  if (isEmbedded) {
    log.warn(
      'embedded stores serve only one process, and a crash can lose the charges of the last moment; set REDIS_URL and DATABASE_URL for production',
    );
  }
}

function addressOf(server: Server, hasTls: boolean): string {
  const address = server.address();
  return address === null || typeof address === 'string'
    ? String(address)
    : `http${hasTls ? 's' : ''}://${address.address}:${address.port}`;
}

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

/** Ends a failed start. For an error that an operator can fix it explains the error and exits 78; for any other it shows the stack and exits 1. */
export function explainStartFailure(error: unknown): never {
  if (error instanceof ConfigurationError || error instanceof StartFailure) {
    const number = error instanceof ConfigurationError ? error.number : undefined;
    const which =
      number === undefined
        ? ''
        : `The newest configuration, revision ${number} in Postgres, is not valid on this node.\n`;
    process.stderr.write(`tollgate cannot start.\n${which}${error.message}\n`);
    process.exit(EXIT_CONFIGURATION);
  }
  if (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EADDRINUSE' || error.code === 'EACCES') &&
    'port' in error
  ) {
    const reason = error.code === 'EADDRINUSE' ? 'is already in use' : 'may not be opened by this user';
    process.stderr.write(
      `tollgate cannot start.\nPort ${error.port} ${reason}: stop the program that uses it, or set PORT or ADMIN_PORT to another port.\n`,
    );
    process.exit(EXIT_CONFIGURATION);
  }
  log.fatal({ error: safeErrorFields(error) }, 'tollgate failed with an unexpected error');
  process.exit(1);
}
