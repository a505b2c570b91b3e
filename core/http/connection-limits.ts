import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../base/metrics';
import { closeWithConnection } from './pipelining';
import { type Proxies, placeOf } from './proxies';

export interface ConnectionLimits {
  readonly max: number;
  readonly maxPerAddress: number;
}

const refused = new Counter({
  name: 'tollgate_connections_refused_total',
  help: 'Connections to either listener closed at once, by the limit that they exceeded.',
  labelNames: ['limit'],
  registers: [metrics],
});

const TOLD_EVERY_MS = 60_000;

/** Closes new connections to a listener above a limit, before reading anything from them. */
export function limitConnections(
  server: Server,
  limits: ConnectionLimits,
  // Addresses of proxies have no limit per address, because a proxy opens the connections of many clients.
  { isProxy }: Pick<Proxies, 'isProxy'>,
  log: Logger,
): void {
  const { max, maxPerAddress } = limits;
  let all = 0;
  const open = new Map<string, number>();
  const known = new WeakSet<Socket>();
  let toldMs = Number.NEGATIVE_INFINITY;

  const note = (limit: 'max' | 'maxPerAddress') => {
    refused.inc({ limit });
    if (performance.now() - toldMs < TOLD_EVERY_MS) return;
    toldMs = performance.now();
    log.warn(
      { limit: `connections.${limit}`, value: limits[limit] },
      'connections are closed because a limit of connections is reached',
    );
  };

  // Node's `maxConnections` cannot be used: the primary process offers a refused connection to its workers again and again.
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    // After a failed upgrade, Node emits `connection` again for the same connection. With TLS, the second event has a TLSSocket instead of the known
    // socket.
    if (known.has(socket) || socket instanceof TLSSocket) return;
    known.add(socket);
    if (all >= max) {
      note('max');
      socket.destroy();
      return;
    }
    all += 1;
    socket.once('close', () => {
      all -= 1;
    });
    if (isProxy(remoteAddress)) return;
    const place = placeOf(remoteAddress);
    const count = (open.get(place) ?? 0) + 1;
    if (count > maxPerAddress) {
      note('maxPerAddress');
      socket.destroy();
      return;
    }
    open.set(place, count);
    socket.once('close', () => {
      const left = (open.get(place) ?? 1) - 1;
      if (left > 0) open.set(place, left);
      else open.delete(place);
    });
  });
}

/**
 * Closes the connection of a client that has read nothing of its answer for this time. The call ends as if its client had disconnected.
 * Backpressure limits the memory of such a call, but nothing else limits its duration.
 */
export function disconnectIdleClients(server: Server, idleMs: number): void {
  // Node emits the event `timeout` both for a client that reads nothing and for the end of keep-alive. The two values differ, to tell which one it
  // was.
  const timeoutMs = idleMs + 1;
  server.timeout = timeoutMs;
  server.on('timeout', (socket: Socket) => {
    const waitsForAnswer = socket.timeout === timeoutMs && socket.writableLength === 0;
    if (!waitsForAnswer) socket.destroy();
  });
}

/** Closes connections that send their headers too slowly, and limits how long idle connections may be reused. Bodies have their own limits. */
export function limitTimes(server: Server): void {
  server.headersTimeout = 10_000;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 75_000;
  server.on('request', closeWithConnection);
}
