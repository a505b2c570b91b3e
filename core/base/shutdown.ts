import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { safeErrorFields } from './safe-error';

/** Counts the requests under way, so that a stop can wait for them. */
export class OpenRequests {
  #open = 0;
  #whenNone: (() => void) | undefined;
  #onBegin = () => {};

  get open(): number {
    return this.#open;
  }

  onBegin(listener: () => void): void {
    this.#onBegin = listener;
  }

  /** Counts each request before any other listener handles it, because that may block the process. Probes do not begin anything. */
  watch(server: Server): void {
    server.prependListener('request', ({ url }: IncomingMessage, response: ServerResponse) => {
      this.#open += 1;
      if (url !== '/healthz' && url !== '/readyz') this.#onBegin();
      response.once('close', () => {
        this.#open -= 1;
        if (this.#open === 0) this.#whenNone?.();
      });
    });
  }

  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve;
      if (this.#open === 0) resolve();
    });
  }
}

interface ShutdownSteps {
  readonly begin: () => void;
  readonly finish: () => Promise<void>;
  readonly cutOff: () => void;
  readonly close: () => Promise<void>;
}

/** How long a client may take to read the end of a call that was cut off, before its connection is closed. */
const CUT_OFF_READ_WITHIN_MS = 2_000;
/** How long closing may take. An unreachable store must not keep a process from ending: what it did not take waits for the next start. */
const CLOSE_WITHIN_MS = 30_000;

/** Stops the process: in order and with the given exit code the first time, at once the second time. */
export function prepareStop(stop: ShutdownSteps, graceMs: number, log: Logger): (exitCode: number) => void {
  let isStopping = false;
  return (exitCode) => {
    if (isStopping) {
      log.warn('stopping at once');
      process.exit(1);
    }
    isStopping = true;
    stopInOrder(stop, graceMs, log).then(
      () => {
        log.info('stopped');
        process.exit(exitCode);
      },
      (error: unknown) => {
        log.error({ err: error }, 'the process could not stop cleanly');
        process.exit(1);
      },
    );
  };
}

async function stopInOrder(
  { begin, finish, cutOff, close }: ShutdownSteps,
  graceMs: number,
  log: Logger,
): Promise<void> {
  begin();
  const finished = finish();
  if (!(await isDoneWithin(graceMs, finished))) {
    log.warn({ graceMs }, 'calls are still running after shutdownGrace and are ended');
    cutOff();
    await isDoneWithin(CUT_OFF_READ_WITHIN_MS, finished);
  }
  setTimeout(() => {
    log.error(
      'connections and files could not be closed in time; the next start resumes waiting entries and settlements',
    );
    process.exit(1);
  }, CLOSE_WITHIN_MS).unref();
  await close();
}

function isDoneWithin(ms: number, work: Promise<void>): Promise<boolean> {
  const timer = new AbortController();
  const done = work.then(() => true).finally(() => timer.abort());
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => true);
  return Promise.race([done, late]);
}

/** Handles an uncaught fault. Running work may finish, but the process takes no new work because it may be broken. A second fault ends it at once. */
export function stopOnFault(stop: (exitCode: number) => void, log: Logger): (fault: unknown, origin: string) => void {
  return (fault, origin) => {
    log.fatal({ error: safeErrorFields(fault), origin }, 'stopping after an unexpected error: running calls finish');
    stop(1);
  };
}

/** Handles SIGTERM and SIGINT. The first lets running work finish; the second ends the process at once. */
export function stopOnSignal(stop: (exitCode: number) => void, log: Logger): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info({ signal }, 'stopping: running calls finish, new ones are refused');
      stop(0);
    });
  }
}
