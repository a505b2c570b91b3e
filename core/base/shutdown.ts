import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { safeErrorFields } from './safe-error';

/** Counts the open HTTP requests of a process, so that its shutdown can wait for them. */
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

  /** Counts each request before any other listener handles it, because a listener may block the process. Health checks do not call the `onBegin` listener. */
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

/** How long a client may take to read the end of a call that the shutdown cut off, before the process closes its connection. */
const CUT_OFF_READ_WITHIN_MS = 2_000;
/** How long closing all resources may take. An unreachable database must not keep a process from ending: unwritten data waits for the next start. */
const CLOSE_WITHIN_MS = 30_000;

/** Returns a function that stops the process. Its first call stops in order, with the given exit code; its second call stops at once, with code 1. */
export function prepareStop(stop: ShutdownSteps, graceMs: number, log: Logger): (exitCode: number) => void {
  let isStopping = false;
  return (exitCode) => {
    if (isStopping) {
      log.warn('stopping at once after a second signal or fault: running calls are cut off');
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
    log.warn({ graceMs }, 'calls are cut off because they were still running after shutdownGrace');
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

/**
 * Handles uncaught exceptions. After the first one, running work finishes but no new work starts, because the process may be broken. A
 * second one ends the process at once.
 */
export function stopOnFault(stop: (exitCode: number) => void, log: Logger): (fault: unknown, origin: string) => void {
  return (fault, origin) => {
    log.fatal({ error: safeErrorFields(fault), origin }, 'stopping after an unexpected error: running calls finish');
    stop(1);
  };
}

/** Handles SIGTERM and SIGINT. The first signal lets running work finish; the second one ends the process at once. */
export function stopOnSignal(stop: (exitCode: number) => void, log: Logger): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      log.info({ signal }, 'stopping: running calls finish, new ones are refused');
      stop(0);
    });
  }
}
