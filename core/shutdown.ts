import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';

/** Knows which requests are being answered, so that a stop can wait for them. */
export class OpenRequests {
  #count = 0;
  #whenNone: (() => void) | undefined;

  watch(server: Server): void {
    server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
      this.#count += 1;
      response.once('close', () => {
        this.#count -= 1;
        if (this.#count === 0) this.#whenNone?.();
      });
    });
  }

  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve;
      if (this.#count === 0) resolve();
    });
  }
}

/**
 * The first SIGTERM or SIGINT lets everything that runs finish, then closes; the second ends the process at once.
 * @param begin takes no new work from now on; `close` closes what is open, in order
 */
export function stopOnSignal(begin: () => void, close: () => Promise<void>, log: Logger): void {
  let isStopping = false;
  const stop = (signal: string) => {
    if (isStopping) {
      log.warn({ signal }, 'stopping at once');
      process.exit(1);
    }
    isStopping = true;
    log.info({ signal }, 'stopping: running calls finish, new ones are refused');
    begin();
    close().then(
      () => {
        log.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
}
