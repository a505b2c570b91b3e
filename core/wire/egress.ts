import { type buildConnector, type Dispatcher, Pool } from 'undici';
import type { Upstream } from '../catalog/catalog';
import { guardedConnector, type Resolve, resolveInDns } from './guarded-connector';

export { classifyDialFailure, type DialFailure, nothingWasSent, wasReusedConnection } from './dial-failure';
export { AddressRefused, type Resolve } from './guarded-connector';

export type Destination = Pick<Upstream, 'name' | 'url' | 'allowPrivate' | 'timeouts'>;

/**
 * The one way out: every upstream and every supplier is dialled through here. Addresses are resolved once per connection,
 * every resolved address must be public unless `allowPrivate`, and the connection goes to an address that was checked.
 * Redirects are not followed and the proxies of the environment are not used.
 *
 * `timeouts.connectMs`, `headersMs` and `idleMs` hold here, each from its own beginning. A bound over connect and headers
 * together, and over waiting for a free connection, is the caller's: an AbortSignal of the request.
 */
export interface Egress {
  /**
   * The pool of an upstream; kept over reloads while its URL and settings stay the same. When they change the old one
   * takes no more requests, finishes those it has, and closes: ask again for every request, do not keep the answer.
   */
  pool(upstream: Destination): Dispatcher;
  /** The same without idle connections, when requests say `reset`: each opens one of its own. */
  fresh(upstream: Destination): Dispatcher;
  /** Dials for what is no HTTP request: the same checks and bounds, no pool. */
  connector(upstream: Destination): buildConnector.connector;
  /** Retires the pool of an upstream that is not configured any more: it finishes its requests, then closes. */
  retire(name: string): void;
  /** Takes no more requests, waits for those that run, closes every connection. */
  close(): Promise<void>;
}

/** A stream holds a connection for as long as it lasts, and thousands of streams may run at one upstream. */
const CONNECTIONS_AT_MOST = 4_096;

/** Shorter than the idle limit of common servers and load balancers (60 s), so that we close first. */
const KEEP_ALIVE_MS = 30_000;

/** What a server's own `Keep-Alive: timeout` may raise that to. */
const KEEP_ALIVE_AT_MOST_MS = 60_000;

interface NamedPool {
  readonly key: string;
  readonly pool: Pool;
  fresh: Pool | undefined;
}

export function openEgress({ resolve = resolveInDns }: { readonly resolve?: Resolve } = {}): Egress {
  const byUpstream = new WeakMap<Destination, Pool>();
  const byName = new Map<string, NamedPool>();
  const closing = new Set<Promise<void>>();
  let closed = false;

  const close = (pool: Pool): void => {
    const ended = pool.close().finally(() => closing.delete(ended));
    closing.add(ended);
  };

  const retire = ({ pool, fresh }: NamedPool): void => {
    close(pool);
    if (fresh !== undefined) close(fresh);
  };

  const find = (upstream: Destination): NamedPool => {
    if (closed) throw new Error('the egress is closed');
    const key = keyOf(upstream);
    const known = byName.get(upstream.name);
    if (known !== undefined && known.key === key) return known;
    // A call that still holds the configuration before a reload gets a pool of its settings opened again: it must
    // neither fail nor be sent to the new address with the old credential.
    if (known !== undefined) retire(known);
    const opened: NamedPool = { key, pool: openPool(upstream, resolve), fresh: undefined };
    byName.set(upstream.name, opened);
    return opened;
  };

  return {
    pool: (upstream) => {
      const known = byUpstream.get(upstream);
      if (known !== undefined && !known.closed) return known;
      const { pool } = find(upstream);
      byUpstream.set(upstream, pool);
      return pool;
    },
    fresh: (upstream) => {
      const found = find(upstream);
      found.fresh ??= openPool(upstream, resolve);
      return found.fresh;
    },
    connector: ({ allowPrivate, timeouts: { connectMs } }) => guardedConnector({ allowPrivate, connectMs, resolve }),
    retire: (name) => {
      const known = byName.get(name);
      if (known === undefined) return;
      byName.delete(name);
      retire(known);
    },
    close: async () => {
      closed = true;
      for (const named of byName.values()) retire(named);
      byName.clear();
      await Promise.all(closing);
    },
  };
}

function openPool({ url, allowPrivate, timeouts }: Destination, resolve: Resolve): Pool {
  return new Pool(url.origin, {
    connect: guardedConnector({ allowPrivate, connectMs: timeouts.connectMs, resolve }),
    connections: CONNECTIONS_AT_MOST,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_AT_MOST_MS,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
  });
}

/** All that a pool is opened with. */
function keyOf({ url, allowPrivate, timeouts }: Destination): string {
  return [url.origin, allowPrivate, timeouts.connectMs, timeouts.headersMs, timeouts.idleMs].join(' ');
}
