import cluster, { type Worker } from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import {
  aggregateMetrics,
  countersOf,
  type MetricsAsJson,
  type MetricsFormat,
  writeMetrics,
} from '../base/aggregate-metrics';
import { StartFailure } from '../base/start-failure';
import type { Facts } from './start';
import { Channel, type Message, type Ready } from './worker';

const MAX_WORKERS = 256;

/** How long a worker must run to count as stable. After a worker that ended sooner, the next one waits before it starts, twice as long each time. */
const STEADY_AFTER_MS = 30_000;
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;

/** How long the primary waits for metrics: a worker with a blocked event loop must not delay the others. */
const METRICS_WITHIN_MS = 2_000;
const RELOADED_WITHIN_MS = 10_000;

/** Returns how many processes serve (`WORKERS`): one if the stores are embedded. @throws StartFailure */
export function readWorkers(env: NodeJS.ProcessEnv, log: Logger): number {
  const count = countOf(env['WORKERS'] || '1');
  if (count === 1 || env['REDIS_URL'] || env['DATABASE_URL']) return count;
  log.warn(
    { WORKERS: count },
    'WORKERS is ignored because the embedded stores serve one process only; set REDIS_URL and DATABASE_URL',
  );
  return 1;
}

function countOf(given: string): number {
  if (given === 'auto') return Math.min(availableParallelism(), MAX_WORKERS);
  const count = /^[1-9]\d*$/.test(given) ? Number(given) : 0;
  if (count >= 1 && count <= MAX_WORKERS) return count;
  throw new StartFailure(`WORKERS is "${given}", but it must be auto or a whole number from 1 to ${MAX_WORKERS}.`);
}

/** Starts `wanted` workers and replaces each that ends. After a stop, this process exits with the last worker. */
export function runWorkers(wanted: number, log: Logger): void {
  const workers = new Workers(wanted, log);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => workers.stop(signal));
  process.on('SIGHUP', () => workers.restart());
  workers.start();
}

interface Member {
  readonly worker: Worker;
  readonly channel: Channel;
  readonly startedMs: number;
  /** A worker in the state `leaving` accepts no new connections. */
  state: 'starting' | 'serving' | 'leaving';
  metrics: MetricsAsJson;
}

class Workers {
  readonly #members = new Set<Member>();
  /** The counters of workers that have ended, so that the sums still contain their counts. */
  #ended: Promise<MetricsAsJson> = Promise.resolve([]);
  /** The worker that serves the admin listener, or is about to. */
  #admin: Member | undefined;
  #isAnnounced = false;
  /** The exit code of this process; set once all workers must end. */
  #exitCode: number | undefined;
  #endedEarly = 0;
  #filling: NodeJS.Timeout | undefined;
  #restarting: Promise<void> = Promise.resolve();
  #isRestartAsked = false;

  constructor(
    private readonly wanted: number,
    private readonly log: Logger,
  ) {}

  /** Starts the first worker alone, because it migrates the database, and because a failed start is then reported once. */
  start(): void {
    void this.#begin();
  }

  /** Stops gracefully at the first signal, and immediately at the second. */
  stop(signal: NodeJS.Signals): void {
    const isFirst = this.#exitCode === undefined;
    this.log.info({ signal }, isFirst ? 'stopping: running calls finish, new ones are refused' : 'stopping at once');
    if (isFirst) this.#end(0);
    else for (const { worker } of this.#members) worker.process.kill('SIGKILL');
  }

  /** Replaces each worker. A new worker serves before an old one leaves. A restart that is requested meanwhile runs after this one. */
  restart(): void {
    if (this.#isRestartAsked) return;
    this.#isRestartAsked = true;
    this.#restarting = this.#restarting.then(() => this.#replaceAll());
  }

  async #replaceAll(): Promise<void> {
    this.#isRestartAsked = false;
    this.log.info('rolling restart: each worker is replaced by a new one');
    for (const old of this.#in('serving')) {
      if (old.state !== 'serving' || !this.#members.has(old)) continue;
      if (!(await this.#begin())) {
        this.log.error(
          'the rolling restart is aborted because a new worker did not start; the running workers continue',
        );
        return;
      }
      await this.#retire(old);
    }
    this.log.info('rolling restart: all workers were replaced');
  }

  /** Starts a worker. Resolves with true when it serves, with false if it ends before. */
  #begin(): Promise<boolean> {
    if (this.#exitCode !== undefined) return Promise.resolve(false);
    const worker = cluster.fork();
    const channel = new Channel((message) => worker.send(message, () => undefined));
    const member: Member = { worker, channel, startedMs: performance.now(), state: 'starting', metrics: [] };
    this.#members.add(member);
    worker.on('message', (message: Message) => void channel.take(message));
    const closeHandedOver = watchHandOver(worker);
    return new Promise((resolve) => {
      channel.answer({
        admin: () => {
          this.#admin ??= member;
          return this.#admin === member;
        },
        ready: (answer) => {
          this.#serves(member, answer as Ready);
          resolve(true);
        },
        leaving: () => this.#leaves(member),
        reload: () => this.#askServing('reload', RELOADED_WITHIN_MS, member),
        'all-metrics': (format) => this.#showMetrics(format as MetricsFormat),
        'last-metrics': (last) => {
          member.metrics = last as MetricsAsJson;
        },
      });
      worker.once('exit', (code: number | null, signal: string | null) => {
        closeHandedOver();
        channel.close();
        this.#isGone(member, code, signal);
        resolve(false);
      });
    });
  }

  #serves(member: Member, { facts }: Ready): void {
    if (this.#exitCode !== undefined) return void member.channel.ask('stop');
    member.state = 'serving';
    void this.#giveAdmin();
    this.#fill();
    if (this.#isAnnounced) this.log.info({ started: member.worker.process.pid }, 'a worker is ready');
    else if (member === this.#admin) this.#announce(facts);
  }

  #announce(facts: Facts): void {
    this.#isAnnounced = true;
    this.log.info({ ...facts, workers: this.wanted }, 'ready');
  }

  #leaves(member: Member): void {
    if (member.state !== 'serving' || this.#exitCode !== undefined) return;
    member.state = 'leaving';
    this.#replace(member, {});
  }

  #isGone(member: Member, code: number | null, signal: string | null): void {
    this.#members.delete(member);
    this.#keepCounters(member);
    if (this.#exitCode !== undefined) {
      if (member.state !== 'starting') this.#exitCode ||= code ?? 1;
      this.#exitWhenAllEnded();
    } else if (member.state === 'starting' && this.#in('serving').length + this.#in('starting').length === 0)
      this.#end(code ?? 1);
    else if (member.state !== 'leaving') this.#replace(member, { code, signal });
  }

  /** Moves the admin listener from this worker to another one, and starts a new worker if one is missing. */
  #replace(member: Member, how: object): void {
    if (this.#admin === member) this.#admin = undefined;
    void this.#giveAdmin();
    if (this.#missing() <= 0) return;
    const isEarly = performance.now() - member.startedMs < STEADY_AFTER_MS;
    this.#endedEarly = isEarly ? this.#endedEarly + 1 : 0;
    const waitMs = this.#endedEarly < 2 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** (this.#endedEarly - 2), MAX_WAIT_MS);
    this.log.warn({ ended: member.worker.process.pid, ...how, waitMs }, 'a worker ended and is replaced');
    clearTimeout(this.#filling);
    this.#filling = setTimeout(() => this.#fill(), waitMs);
  }

  #missing(): number {
    return this.wanted - this.#in('serving').length - this.#in('starting').length;
  }

  #fill(): void {
    for (let missing = this.#missing(); missing > 0; missing -= 1) void this.#begin();
  }

  async #retire(old: Member): Promise<void> {
    old.state = 'leaving';
    if (this.#admin === old) this.#admin = undefined;
    await this.#giveAdmin();
    await old.channel.ask('retire');
  }

  async #giveAdmin(): Promise<void> {
    const [next] = this.#in('serving');
    if (this.#admin !== undefined || next === undefined) return;
    this.#admin = next;
    await next.channel.ask('serve-admin');
  }

  #in(state: Member['state']): readonly Member[] {
    return [...this.#members].filter((member) => member.state === state);
  }

  #askServing(question: string, withinMs: number, except: Member): Promise<unknown> {
    const others = this.#in('serving').filter((member) => member !== except);
    return Promise.all(others.map(({ channel }) => askInTime(channel, question, withinMs))).then(() => undefined);
  }

  #keepCounters({ metrics }: Member): void {
    const counters = countersOf(metrics);
    this.#ended = this.#ended.then((ended) => aggregateMetrics([ended, counters]));
  }

  /** Returns the sum of all workers' metrics, each worker once. A worker that ends meanwhile counts with its last report. */
  async #showMetrics(format: MetricsFormat): Promise<string> {
    const ended = this.#ended;
    const serving = [...this.#members].filter(({ state }) => state !== 'starting');
    const living = serving.map(async (member) => {
      const answer = member.channel.ask('metrics').then((answer) => {
        if (answer !== undefined) member.metrics = answer as MetricsAsJson;
        return member.metrics;
      });
      return Promise.race([answer, sleep(METRICS_WITHIN_MS, undefined, { ref: false }).then(() => member.metrics)]);
    });
    return writeMetrics([...(await Promise.all(living)), await ended], format);
  }

  /** Ends all workers; this process exits with the last of them. */
  #end(exitCode: number): void {
    this.#exitCode = exitCode;
    clearTimeout(this.#filling);
    for (const { state, worker, channel } of this.#members) {
      if (state === 'starting') worker.process.kill();
      else void channel.ask('stop');
    }
    this.#exitWhenAllEnded();
  }

  #exitWhenAllEnded(): void {
    if (this.#members.size > 0) return;
    if (this.#isAnnounced) this.log.info('all workers have stopped');
    process.exit(this.#exitCode);
  }
}

/** The messages of Node's cluster about a connection: the primary's to a worker, and the worker's answer. */
interface HandOver {
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
}

/**
 * Watches the connections that Node hands to a worker. If the worker ends, Node drops them without closing them, and their clients would
 * wait until their own timeout. Returns a function that closes these connections.
 */
function watchHandOver({ process: child }: Worker): () => void {
  const underWay = new Map<unknown, { close(): void }>();
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  child.send = (message: HandOver, handle?: unknown, ...rest: unknown[]) => {
    if (message.act === 'newconn' && isClosable(handle)) underWay.set(message.seq, handle);
    return send(message, handle, ...rest);
  };
  child.on('internalMessage', ({ ack }: HandOver) => underWay.delete(ack));
  return () => {
    for (const handle of underWay.values()) handle.close();
  };
}

function isClosable(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle;
}

function askInTime(channel: Channel, question: string, withinMs: number): Promise<unknown> {
  return Promise.race([channel.ask(question), sleep(withinMs, undefined, { ref: false })]);
}
