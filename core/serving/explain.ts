import { ConfigurationError } from '../configuration/yaml-file';
import { log } from '../log';
import { EXIT_CONFIGURATION, StartFailure } from '../start-failure';
import { describeFault } from '../thrown';

/** Ends a start that has failed. It explains what an operator can fix and exits 78; any other error keeps its stack and exits 1. */
export function explain(error: unknown): never {
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
  log.fatal({ error: describeFault(error) }, 'tollgate failed with an unexpected error');
  process.exit(1);
}
