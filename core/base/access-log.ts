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

/** The most bytes that a pipe takes at once without mixing them with the output of other processes. */
const ATOMIC_WRITE_BYTES = 4_096;
/** The most bytes that wait for a slow reader. Further lines are dropped, and no call waits. */
const MAX_WAITING_BYTES = 4_194_304;
const WRITTEN_WITHIN_MS = 250;

const BASE = cluster.isWorker ? `,"worker":${process.pid}` : '';

/**
 * Writes frequent lines to standard output in the format of the log. `members` is JSON text that begins with a comma. They
 * are written together, within a quarter of a second.
 */
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
  /** Set while lines wait. The library's own timer would write nothing four times a second in an idle process. */
  #flushing: NodeJS.Timeout | undefined;
  /** Whether the last flush may have done nothing, because a write was under way. */
  #mustFlushAgain = false;

  /** `share`: which part of the lines of successes is written. With 0 there are no lines at all. */
  constructor(share: number) {
    this.#share = log.isLevelEnabled('info') ? share : 0;
  }

  /** Returns whether something that ended gets a line. */
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
