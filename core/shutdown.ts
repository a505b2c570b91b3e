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

export interface Stop {
  /** Takes no new work from now on. */
  readonly begin: () => void;
  /** Waits for the calls that run, however long they take. */
  readonly finish: () => Promise<void>;
  /** Closes what is open, in order. */
  readonly close: () => Promise<void>;
}

/** Stores that are gone must not keep a process from ending: what they did not take waits for the next start. */
const CLOSE_WITHIN_MS = 30_000;

/** The first SIGTERM or SIGINT lets everything that runs finish, then closes; the second ends the process at once. */
export function stopOnSignal({ begin, finish, close }: Stop, log: Logger): void {
  let isStopping = false;
  const stop = (signal: string) => {
    if (isStopping) {
      log.warn({ signal }, 'stopping at once');
      process.exit(1);
    }
    isStopping = true;
    log.info({ signal }, 'stopping: running calls finish, new ones are refused');
    begin();
    finish()
      .then(() => {
        setTimeout(() => {
          log.error(
            'what was open could not be closed in time; entries and settlements that wait are found at the next start',
          );
          process.exit(1);
        }, CLOSE_WITHIN_MS).unref();
        return close();
      })
      .then(
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
