import cluster from 'node:cluster';
import { pino } from 'pino';
import { Counter } from 'prom-client';
import { log } from './log';
import { metrics } from './metrics';

const dropped = new Counter({
  name: 'tollgate_log_lines_dropped_total',
  help: 'Log lines of calls and requests that were dropped because standard output was blocked.',
  registers: [metrics],
});

/** The most bytes of one write to a pipe that the system does not mix with the output of other processes. */
const ATOMIC_WRITE_BYTES = 4_096;
/** The most bytes that wait for a slow reader of standard output. Further lines are dropped, so that no call waits. */
const MAX_WAITING_BYTES = 4_194_304;
const WRITTEN_WITHIN_MS = 250;

const BASE = cluster.isWorker ? `,"worker":${process.pid}` : '';

/** Writes frequent log lines to standard output, several in one write, within 250 ms. The `members` of a line are JSON text that begins with a comma. */
export class AccessLog {
  readonly #share: number;
  readonly #out = pino
    .destination({
      dest: 1,
      sync: false,
      minLength: ATOMIC_WRITE_BYTES - 1,
      maxWrite: ATOMIC_WRITE_BYTES,
      maxLength: MAX_WAITING_BYTES,
    })
    .on('drop', () => dropped.inc())
    .on('drain', () => this.#flushAgain());
  /** The timer of the next flush, set while lines wait. A timer of the library pino would wake an idle process four times a second. */
  #flushing: NodeJS.Timeout | undefined;
  /** Whether the last flush may have written nothing, because another write was under way. */
  #mustFlushAgain = false;

  /** `share`: the share of successful calls and requests that get a log line, 0 to 1. With 0, failed ones get none either. */
  constructor(share: number) {
    this.#share = log.isLevelEnabled('info') ? share : 0;
  }

  /** Returns whether a call or request that has ended gets a log line. */
  takes(hasFailed: boolean): boolean {
    const share = this.#share;
    return share === 1 || (share > 0 && (hasFailed || Math.random() < share));
  }

  write(message: string, members: string): void {
    this.#out.write(`{"level":30,"time":"${new Date().toISOString()}"${BASE}${members},"msg":"${message}"}\n`);
    this.#flushing ??= setTimeout(() => this.#flush(), WRITTEN_WITHIN_MS).unref();
  }

  #flush(): void {
    this.#flushing = undefined;
    this.#mustFlushAgain = true;
    this.#out.flush();
  }

  #flushAgain(): void {
    if (!this.#mustFlushAgain) return;
    this.#mustFlushAgain = false;
    this.#out.flush();
  }
}
