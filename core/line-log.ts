import cluster from 'node:cluster';
import { Counter } from 'prom-client';
import { log } from './log';
import { metrics } from './metrics';
import { openLineOutput } from './standard-output';

const dropped = new Counter({
  name: 'tollgate_log_lines_dropped_total',
  help: 'Log lines of calls and requests that were dropped because standard output was blocked.',
  registers: [metrics],
});

const BASE = cluster.isWorker ? `,"worker":${process.pid}` : '';

/**
 * Writes frequent lines to standard output in the format of the log. `members` is JSON text that begins with a comma. They
 * are written together, within a quarter of a second.
 */
export class LineLog {
  readonly #share: number;
  readonly #out = openLineOutput(() => dropped.inc());

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
  }
}
