import type { Server } from 'node:http';
import type { Logger } from 'pino';

/** The operator's own proxies and load balancers. */
export interface Proxies {
  /** The number of proxies between clients and this process. Each one adds the address of its client to `X-Forwarded-For`. */
  readonly count: number;
  /** Returns whether a proxy may connect from an address. */
  readonly isProxy: (address: string) => boolean;
}

const WARNED_EVERY_MS = 3_600_000;

/** Warns once an hour if requests seem to come through proxies that the operator has not configured. */
export function warnOfUnnamedProxies(
  server: Server,
  { count, isProxy }: Proxies,
  log: Logger,
  now: () => number = () => performance.now(),
): void {
  if (count > 0) return;
  let warnedMs = Number.NEGATIVE_INFINITY;
  server.on('request', ({ headers, socket: { remoteAddress = '' } }) => {
    if (headers['x-forwarded-for'] === undefined || now() - warnedMs < WARNED_EVERY_MS || !isProxy(remoteAddress))
      return;
    warnedMs = now();
    log.warn(
      { peer: remoteAddress },
      'a proxy sent X-Forwarded-For, but proxies.count in system.config.yml is 0: set it to ' +
        'how many proxies of yours stand in front, else attempts to sign in are counted as if all came from one address',
    );
  });
}
