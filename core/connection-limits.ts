import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { placeOf } from './client-place';
import { metrics } from './metrics';
import { StartFailure } from './start-failure';

export interface ConnectionLimits {
  /** Connections in all. */
  readonly most: number;
  /** Connections of one client's address. */
  readonly mostOfAddress: number;
  /** Addresses and ranges of one's own proxies: they bring the connections of many clients. */
  readonly proxies: readonly string[];
}

const refused = new Counter({
  name: 'tollgate_connections_refused_total',
  help: 'Connections to the public listener that were closed at once, by the limit they were above.',
  labelNames: ['limit'],
  registers: [metrics],
});

const TOLD_EVERY_MS = 60_000;

/** Closes connections to the public listener that are above a limit, before anything is read of them. */
export function limitConnections(server: Server, limits: ConnectionLimits, log: Logger): void {
  const { most, mostOfAddress } = limits;
  const isProxy = proxyTest(limits.proxies);
  const open = new Map<string, number>();
  const known = new WeakSet<Socket>();
  let toldMs = Number.NEGATIVE_INFINITY;

  const note = (limit: 'most' | 'mostOfAddress') => {
    refused.inc({ limit });
    if (performance.now() - toldMs < TOLD_EVERY_MS) return;
    toldMs = performance.now();
    log.warn({ limit: `connections.${limit}`, value: limits[limit] }, 'connections are refused: a limit is reached');
  };

  server.maxConnections = most;
  server.on('drop', () => note('most'));
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    // A connection that asked for an upgrade in vain is given to the server a second time.
    if (known.has(socket) || isProxy(remoteAddress)) return;
    known.add(socket);
    const place = placeOf(remoteAddress);
    const count = (open.get(place) ?? 0) + 1;
    if (count > mostOfAddress) {
      note('mostOfAddress');
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

function proxyTest(proxies: readonly string[]): (address: string) => boolean {
  const ranges = proxies.map(toRange);
  return (text) => {
    if (!ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
  };
}

/** An address is a range of one. @throws StartFailure */
function toRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text))
    throw new StartFailure(`system.config.yml: connections.proxies: ${text} is neither an address nor a range.`);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}
