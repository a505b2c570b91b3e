import { EventEmitter, once } from 'node:events';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Stop } from '../../../core/base/resources';

const CHANNEL = 'tollgate_sandboxes';
const CONNECT_AGAIN_MS = 1_000;

/** Publishes change events of sandboxes to all processes that share a database. Events may be lost, so a waiting process must also poll. */
export class Changes {
  /** Emits two events for each change: one named by the sandbox's id, and one named `any`. */
  readonly #events = new EventEmitter().setMaxListeners(0);
  #stop: Stop = async () => {};

  constructor(
    private readonly database: Knex,
    private readonly log: Logger,
  ) {}

  /** Publishes a change to all processes once the transaction is committed. */
  readonly announce = async (transaction: Knex, sandboxId: string): Promise<void> => {
    await transaction.raw('SELECT pg_notify(?, ?)', [CHANNEL, sandboxId]);
  };

  /** Resolves at the next event of this sandbox, or after this time. */
  async next(sandboxId: string, withinMs: number): Promise<void> {
    await once(this.#events, sandboxId, { signal: AbortSignal.timeout(Math.ceil(withinMs)) }).catch(() => undefined);
  }

  /** Calls the listener at every event. Returns the function that removes it. */
  onAny(listener: () => void): () => void {
    this.#events.on('any', listener);
    return () => this.#events.off('any', listener);
  }

  /** Starts to receive change events from the database. */
  async listen(): Promise<void> {
    this.#stop = await listen(this.database, this.log, (sandboxId) => {
      this.#events.emit(sandboxId);
      this.#events.emit('any');
    });
  }

  close(): Promise<void> {
    return this.#stop();
  }
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
    // PGlite has only one connection, which is ready after the first query of the pool.
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
