import type { Server } from 'node:http';
import { closeWithConnection } from './pipelined';

/**
 * Closes connections that send their headers too slowly. Bodies have limits of their own. Idle connections may be reused for some
 * time.
 */
export function limitTimes(server: Server): void {
  server.headersTimeout = 10_000;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 75_000;
  server.on('request', closeWithConnection);
}
