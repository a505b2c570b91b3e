import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Stop } from '../../../core/resources';

/** Publishes change events of sandboxes to all processes that share a database. Events may be lost, so a waiting process must also poll. */
export interface Changes {
  /** Publishes a change to all processes once the transaction is committed. */
  announce(transaction: Knex, sandboxId: string): Promise<void>;
  /** Resolves at the next event of this sandbox, or after this time. */
  next(sandboxId: string, withinMs: number): Promise<void>;
  /** Calls the listener at every event. Returns the function that removes it. */
  onAny(listener: () => void): () => void;
  /** Starts to receive events. */
  listen(): Promise<void>;
  close(): Promise<void>;
}

const CHANNEL = 'tollgate_sandboxes';
const CONNECT_AGAIN_MS = 1_000;

export function openChanges(database: Knex, log: Logger): Changes {
  const waiting = new Map<string, Set<() => void>>();
  const listeners = new Set<() => void>();
  const notify = (sandboxId: string) => {
    for (const wake of waiting.get(sandboxId) ?? []) wake();
    for (const listener of listeners) listener();
  };
  let stop = async () => {};
  return {
    announce: async (transaction, sandboxId) => {
      await transaction.raw('SELECT pg_notify(?, ?)', [CHANNEL, sandboxId]);
    },
    next: (sandboxId, withinMs) =>
      new Promise((resolve) => {
        const wakers = waiting.get(sandboxId) ?? new Set();
        waiting.set(sandboxId, wakers);
        const wake = () => {
          clearTimeout(timer);
          wakers.delete(wake);
          if (wakers.size === 0) waiting.delete(sandboxId);
          resolve();
        };
        const timer = setTimeout(wake, withinMs);
        wakers.add(wake);
      }),
    onAny: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    listen: async () => {
      stop = await listen(database, log, notify);
    },
    close: () => stop(),
  };
}

/** The members of `pg`'s client and of PGlite that are used here. */
interface PostgresConnection {
  on(event: 'notification', listener: (message: { payload?: string }) => void): void;
  on(event: 'error' | 'end', listener: () => void): void;
  query(sql: string): Promise<unknown>;
  end(): Promise<void>;
}
interface EmbeddedClient {
  readonly pglite: { listen(channel: string, listener: (payload: string) => void): Promise<Stop> };
}

async function listen(database: Knex, log: Logger, notify: (payload: string) => void): Promise<Stop> {
  const client = database.client as Partial<EmbeddedClient> & { acquireRawConnection(): Promise<PostgresConnection> };
  if (client.pglite !== undefined) {
    // PGlite has one connection; a first query of the pool makes it ready.
    await database.raw('SELECT 1');
    return client.pglite.listen(CHANNEL, notify);
  }
  return listenOnPostgres(() => client.acquireRawConnection(), log, notify);
}

/** Listens on a connection outside the pool, and opens it again when it is lost. */
async function listenOnPostgres(
  connect: () => Promise<PostgresConnection>,
  log: Logger,
  notify: (payload: string) => void,
): Promise<Stop> {
  let connection: PostgresConnection | undefined;
  let stopped = false;
  let again: NodeJS.Timeout | undefined;
  const open = async (): Promise<void> => {
    try {
      const opened = await connect();
      connection = opened;
      opened.on('notification', ({ payload }) => notify(payload ?? ''));
      opened.on('error', () => undefined);
      opened.on('end', later);
      await opened.query(`LISTEN ${CHANNEL}`);
      if (stopped) await opened.end();
    } catch (error) {
      log.warn(
        { reason: String(error) },
        'events of sandboxes cannot be received from Postgres; the process polls instead',
      );
      later();
    }
  };
  const later = () => {
    if (stopped) return;
    clearTimeout(again);
    again = setTimeout(open, CONNECT_AGAIN_MS);
  };
  await open();
  return async () => {
    stopped = true;
    clearTimeout(again);
    await connection?.end().catch(() => undefined);
  };
}
