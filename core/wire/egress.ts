import { isIP, type Socket } from 'node:net';
import { type buildConnector, type Dispatcher, Pool } from 'undici';
import type { Upstream } from '../catalog/catalog';
import { guardedConnector, type Resolve, resolveInDns } from './guarded-connector';

export { classifyDialFailure, type DialFailure, nothingWasSent, wasReusedConnection } from './dial-failure';
export { AddressRefused, type Resolve } from './guarded-connector';

export interface Destination extends Pick<Upstream, 'name' | 'url' | 'allowPrivate'> {
  readonly timeouts: Pick<Upstream['timeouts'], 'connectMs' | 'headersMs' | 'idleMs'>;
}

/** The host and port of a server that is not an upstream. */
interface DialledAddress {
  /** An IP address, or a name. */
  readonly host: string;
  readonly port: number;
  readonly tls?: boolean | undefined;
}

/**
 * Opens every connection of the gateway to an upstream or a supplier. It resolves a host once for each connection. All addresses of the
 * host must be public unless `allowPrivate` is set, and the connection uses a checked address. It follows no redirects, and ignores the
 * proxy variables of the environment. `timeouts.connectMs`, `headersMs` and `idleMs` each limit one phase. A caller that wants to limit
 * connecting and headers together, or waiting for a free connection, passes an AbortSignal.
 */
export interface Egress {
  /**
   * Returns the pool of an upstream. It stays the same over reloads while the URL and settings are the same. When they change,
   * the old pool accepts no more requests, finishes those it has, and closes. Call this for every request, and do not keep the
   * result.
   */
  pool(upstream: Destination): Dispatcher;
  /** Returns a pool without idle connections, for requests with `reset`: each opens a new connection. */
  fresh(upstream: Destination): Dispatcher;
  /** Opens a connection for other protocols than HTTP requests, with the same checks and limits, without a pool. */
  connector(upstream: Destination): buildConnector.connector;
  /**
   * Opens a connection to exactly this host and port, within `connectMs`. An IP address may be private, because a part of the
   * gateway named that address; the addresses of a name must be public.
   */
  dial(address: DialledAddress, connectMs: number): Promise<Socket>;
  /** Retires the pool of an upstream that is no longer configured: it finishes its requests, then closes. */
  retire(name: string): void;
  close(): Promise<void>;
}

/** The maximum connections to one upstream. A stream occupies a connection until it ends, and thousands of streams may run. */
const MAX_CONNECTIONS = 4_096;

/** How long an idle connection stays open. Common servers and load balancers close after 60 s, so the gateway closes first. */
const KEEP_ALIVE_MS = 30_000;

/** The maximum idle timeout that a server can set with its own header `Keep-Alive: timeout`. */
const MAX_KEEP_ALIVE_MS = 60_000;

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
    // A call that still uses the configuration before a reload gets a new pool with its old settings. It must neither fail nor be
    // sent to the new address with the old credential.
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
    dial: ({ host, port, tls = false }, connectMs) => {
      const connect = guardedConnector({ allowPrivate: isIP(host) !== 0, connectMs, resolve });
      const address = { hostname: host, host, port: String(port), protocol: tls ? 'https:' : 'http:' };
      return new Promise((resolve, reject) =>
        connect(address, (error, socket) => (error === null ? resolve(socket) : reject(error))),
      );
    },
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
    connections: MAX_CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
  });
}

/** Returns the settings that a pool depends on, as one text. If this text changes, the upstream needs a new pool. */
function keyOf({ url, allowPrivate, timeouts }: Destination): string {
  return [url.origin, allowPrivate, timeouts.connectMs, timeouts.headersMs, timeouts.idleMs].join(' ');
}
