import cluster from 'node:cluster';
import { once } from 'node:events';
import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { metrics, readMetricsFrom } from '../base/metrics';
import { safeErrorFields } from '../base/safe-error';
import type { LiveConfiguration } from '../configuration/live-configuration';
import type { ExpressGateway } from './express-gateway';
import type { Facts } from './start';

/** A message between the primary and a worker: a numbered question, or the answer to one. */
export type Message =
  | { readonly question: string; readonly number: number; readonly given?: unknown }
  | { readonly answerTo: number; readonly value?: unknown };

export type Answers = Readonly<Record<string, (given: unknown) => unknown>>;

/** Questions and answers between the primary process and one worker. */
export class Channel {
  readonly #send: (message: Message) => void;
  #answers: Answers;
  readonly #waiting = new Map<number, (value: unknown) => void>();
  #asked = 0;
  #isOpen = true;

  constructor(send: (message: Message) => void, answers: Answers = {}) {
    this.#send = send;
    this.#answers = answers;
  }

  /** Sets the functions with which this process answers questions from the other end of the channel (primary or worker) from now on. */
  answer(answers: Answers): void {
    this.#answers = answers;
  }

  /** Asks the process at the other end of the channel (primary or worker). Returns undefined if that process has no answer, or ends before it answers. */
  ask(question: string, given?: unknown): Promise<unknown> {
    return new Promise((resolve) => {
      if (!this.#isOpen) return resolve(undefined);
      const number = ++this.#asked;
      this.#waiting.set(number, resolve);
      this.#send({ question, number, given });
    });
  }

  async take(message: Message): Promise<void> {
    if ('answerTo' in message) {
      this.#waiting.get(message.answerTo)?.(message.value);
      this.#waiting.delete(message.answerTo);
      return;
    }
    const value = await this.#answers[message.question]?.(message.given);
    this.#send({ answerTo: message.number, value });
  }

  /** Answers open questions with undefined, because the process at the other end of the channel has ended. */
  close(): void {
    this.#isOpen = false;
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }
}

/** How long the worker waits before it tries again to open the admin listener. */
const OPEN_AGAIN_MS = 1_000;

/** Returns a worker's channel to the process that started it; undefined in a process without workers. */
export function reachPrimary(): Channel | undefined {
  if (!cluster.isWorker) return undefined;
  const channel = new Channel((message) => process.send?.(message, undefined, undefined, () => undefined));
  process.on('message', (message: Message) => void channel.take(message));
  process.once('disconnect', () => channel.close());
  // A terminal sends SIGINT to the primary and to all workers. A worker ignores it, because the primary decides.
  process.on('SIGINT', () => undefined);
  readMetricsFrom(async (format) => String(await channel.ask('all-metrics', format)));
  return channel;
}

/** The report of a worker that is ready. */
export interface Ready {
  readonly facts: Facts;
}

/** Reports this worker's metrics to the primary before it ends. */
export async function publishMetrics(primary: Channel | undefined): Promise<void> {
  await primary?.ask('last-metrics', await metrics.getMetricsAsJSON());
}

/** Returns whether this worker serves the admin listener. */
export async function mayServeAdmin(primary: Channel | undefined): Promise<boolean> {
  return primary === undefined || (await primary.ask('admin')) === true;
}

interface WorkerParts extends Ready {
  readonly servers: ExpressGateway;
  readonly live: LiveConfiguration;
  /** Asks clients with a WebSocket to reconnect. */
  readonly closeSockets: () => void;
  /** Resolves when no call, request or WebSocket is open. */
  readonly none: () => Promise<unknown>;
  readonly stop: (exitCode: number) => void;
  readonly log: Logger;
}

/** Serves as one of several workers, until the primary, a signal or a fault ends it. Returns a function that stops it after a fault. */
export function serveAsWorker(primary: Channel, parts: WorkerParts): (exitCode: number) => void {
  const { servers, live, closeSockets, none, stop, facts, log } = parts;
  let isLeaving = false;
  let isStopping = false;
  const stopOnce = () => {
    if (!isStopping) stop(0);
    isStopping = true;
  };

  /** Stops accepting connections, so that other workers accept them. Open connections stay, because a client may be sending a request on one. */
  const closeListeners = () => {
    servers.http.prependListener('request', (_request, response) => {
      response.shouldKeepAlive = false;
    });
    NetServer.prototype.close.call(servers.http);
    servers.admin.close();
  };
  const retire = () => {
    if (isLeaving || isStopping) return;
    isLeaving = true;
    log.info('this worker stops: other workers take new calls, and it exits when its own calls have ended');
    const closed = once(servers.http, 'close');
    closeListeners();
    closeSockets();
    // Idle connections stay open for the keep-alive time that their clients were promised.
    const promised = sleep(servers.http.keepAliveTimeout);
    void Promise.race([closed, promised]).then(none).then(stopOnce);
  };
  const openAdmin = (): Promise<void> =>
    servers.openAdmin().catch(async (error: unknown) => {
      log.error({ error: safeErrorFields(error) }, 'the admin listener cannot be opened; this worker retries');
      await sleep(OPEN_AGAIN_MS);
      return openAdmin();
    });

  primary.answer({
    'serve-admin': openAdmin,
    retire,
    stop: stopOnce,
    metrics: () => metrics.getMetricsAsJSON(),
    reload: () =>
      live.reload('worker').catch((error: unknown) => {
        log.error({ error: safeErrorFields(error) }, 'the configuration could not be read');
      }),
  });
  process.on('SIGTERM', () => {
    void primary.ask('leaving');
    retire();
  });
  cluster.worker?.once('disconnect', () => {
    // Without `exitedAfterDisconnect`, Node would end this worker as soon as the primary process has ended.
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
    log.error('the primary process has ended: this worker finishes its calls and exits');
    stopOnce();
  });
  void primary.ask('ready', { facts } satisfies Ready);
  return (exitCode) => {
    if (!isStopping) {
      isStopping = true;
      void primary.ask('leaving');
      closeListeners();
    }
    stop(exitCode);
  };
}
