import cluster from 'node:cluster';
import { type Logger, pino } from 'pino';

/** The logger of the process. It writes JSON lines to standard output and never gets content of a call, a header value or a key. */
export const log: Logger = pino({
  level: process.env['LOG_LEVEL'] ?? 'info',
  base: cluster.isWorker ? { worker: process.pid } : null,
  timestamp: pino.stdTimeFunctions.isoTime,
});
