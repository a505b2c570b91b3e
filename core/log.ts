import cluster from 'node:cluster';
import { type Logger, pino } from 'pino';

/** JSON lines on standard output. Nothing of a call's content, no header value and no key is ever logged. */
export const log: Logger = pino({
  level: process.env['LOG_LEVEL'] ?? 'info',
  base: cluster.isWorker ? { worker: process.pid } : null,
  timestamp: pino.stdTimeFunctions.isoTime,
});
