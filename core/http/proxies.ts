import type { IncomingMessage, Server } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';

/** The proxies and load balancers that the operator runs in front of the gateway. */
export interface Proxies {
  /** The number of proxies between clients and this process. Each one appends the address of its own client to `X-Forwarded-For`. */
  readonly count: number;
  readonly isProxy: (address: string) => boolean;
}

const WARNED_EVERY_MS = 3_600_000;

const USUAL_FOR_PROXIES: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal']);

/** Returns whether an address is loopback or in a private range. */
export function isPrivate(address: string): boolean {
  return ipaddr.isValid(address) && USUAL_FOR_PROXIES.has(ipaddr.process(address).range());
}

/** Warns at most once an hour if a private address sends `X-Forwarded-For`, as a proxy does, while `proxies.count` is 0. */
export function watchForwarding(
  server: Server,
  { count }: Proxies,
  log: Logger,
  now: () => number = () => performance.now(),
): void {
  if (count > 0) return;
  let warnedMs = Number.NEGATIVE_INFINITY;
  server.on('request', ({ headers, socket: { remoteAddress: peer = '' } }) => {
    if (headers['x-forwarded-for'] === undefined || now() - warnedMs < WARNED_EVERY_MS || !isPrivate(peer)) return;
    warnedMs = now();
    log.warn(
      { peer },
      'a proxy seems to be in front, but proxies.count in system.config.yml is 0: set it to how many proxies of ' +
        'yours are in front, else all clients count as one for connections and attempts to sign in',
    );
  });
}

/**
 * Returns the client's address. `X-Forwarded-For` counts only if the connection comes from one of the operator's proxies. Only its last
 * entries count, one per proxy, because the proxies themselves have added them. Undefined if there are too few entries, or one is not an
 * address.
 */
export function clientAddress({ headers, socket }: IncomingMessage, { count, isProxy }: Proxies): string | undefined {
  const peer = socket.remoteAddress ?? '';
  if (count === 0 || !isProxy(peer)) return peer;
  const added = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-count)
    ?.trim();
  return added !== undefined && ipaddr.isValid(added) ? added : undefined;
}

/** Returns the address range (see `placeOf`) that counts as one client. If the proxy reports no client address, it is the range of the proxy. */
export function clientPlace(request: IncomingMessage, proxies: Proxies): string {
  return placeOf(clientAddress(request, proxies) ?? request.socket.remoteAddress ?? '');
}

/** Returns the address or range that counts as one client. It is an IPv4 address, or the /64 of an IPv6 address, because a /64 usually belongs to one user. */
export function placeOf(text: string): string {
  if (!ipaddr.isValid(text)) return text;
  const address = ipaddr.process(text);
  return address instanceof ipaddr.IPv6 ? `${address.parts.slice(0, 4).join(':')}::/64` : address.toString();
}
