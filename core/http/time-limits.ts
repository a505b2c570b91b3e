import type { Server } from 'node:http';
import type { OpenRequests } from '../shutdown';
import { closeWithConnection } from './pipelined';

/** Slow senders of headers are closed; bodies have their own limits; idle connections may be used again for a while. */
export function limitTimes(server: Server, openRequests: OpenRequests): void {
  server.headersTimeout = 10_000;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 75_000;
  openRequests.watch(server);
  server.on('request', closeWithConnection);
}
