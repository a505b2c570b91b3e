import type { Server } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';

/** The operator's own proxies and load balancers. */
export interface Proxies {
  /** The number of proxies between clients and this process. Each one adds the address of its client to `X-Forwarded-For`. */
  readonly count: number;
  /** Returns whether a proxy may connect from an address. */
  readonly isProxy: (address: string) => boolean;
}

const WARNED_EVERY_MS = 3_600_000;

const USUAL_FOR_PROXIES: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal']);

/** Returns whether an address is loopback or in a private range. */
export function isPrivate(address: string): boolean {
  return ipaddr.isValid(address) && USUAL_FOR_PROXIES.has(ipaddr.process(address).range());
}

/** A sign that a proxy is in front that the operator has not named. */
export type ProxySign = 'it sent X-Forwarded-For' | 'more than half of the connections come from it';

/** Returns a function that warns, once an hour, if a private address seems to be a proxy and `proxies.count` is 0. */
export function proxyWarning(
  { count }: Proxies,
  log: Logger,
  now: () => number = () => performance.now(),
): (peer: string, sign: ProxySign) => void {
  let warnedMs = Number.NEGATIVE_INFINITY;
  return (peer, sign) => {
    if (count > 0 || now() - warnedMs < WARNED_EVERY_MS || !isPrivate(peer)) return;
    warnedMs = now();
    log.warn(
      { peer, sign },
      'a proxy seems to be in front, but proxies.count in system.config.yml is 0: set it to how many proxies of ' +
        'yours are in front, else all clients count as one for connections and attempts to sign in',
    );
  };
}

/** Warns of proxies that send `X-Forwarded-For` and are not configured. */
export function watchForwarding(server: Server, warn: (peer: string, sign: ProxySign) => void): void {
  server.on('request', ({ headers, socket: { remoteAddress = '' } }) => {
    if (headers['x-forwarded-for'] !== undefined) warn(remoteAddress, 'it sent X-Forwarded-For');
  });
}
