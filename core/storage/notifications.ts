import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Stop } from '../base/resources';

const CONNECT_AGAIN_MS = 1_000;

/** Receives the payload of a notification. */
type Listener = (payload: string) => void;

/** The members of `pg`'s client and of PGlite that are used here. */
interface PostgresConnection {
  on(event: 'notification', listener: (message: { channel: string; payload?: string }) => void): void;
  on(event: 'error' | 'end', listener: () => void): void;
  query(sql: string): Promise<unknown>;
  end(): Promise<void>;
}
interface EmbeddedClient {
  readonly pglite: { listen(channel: string, listener: Listener): Promise<Stop> };
}

/** The listening connection of each database, which all channels of a process share. */
const connections = new WeakMap<Knex, ListeningConnection>();

/**
 * Calls the listener for each notification (`pg_notify`) on a channel of the database. One listener per channel. Notifications may be lost
 * while the connection is, so the caller must also poll.
 */
export async function listenForNotifications(
  database: Knex,
  channel: string,
  log: Logger,
  listener: Listener,
): Promise<Stop> {
  const client = database.client as Partial<EmbeddedClient> & { acquireRawConnection(): Promise<PostgresConnection> };
  if (client.pglite !== undefined) {
    // PGlite has only one connection, which is ready after the first query of the pool.
    await database.raw('SELECT 1');
    return client.pglite.listen(channel, listener);
  }
  const known = connections.get(database);
  const connection = known ?? new ListeningConnection(() => client.acquireRawConnection(), log);
  if (known === undefined) connections.set(database, connection);
  await connection.add(channel, listener);
  return async () => {
    const isUnused = await connection.remove(channel);
    if (isUnused && connections.get(database) === connection) connections.delete(database);
  };
}

/** Listens on a connection outside the pool, and opens it again when it is lost. */
class ListeningConnection {
  readonly #listeners = new Map<string, Listener>();
  #opening: Promise<void> | undefined;
  #connection: PostgresConnection | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(
    private readonly connect: () => Promise<PostgresConnection>,
    private readonly log: Logger,
  ) {}

  async add(channel: string, listener: Listener): Promise<void> {
    this.#listeners.set(channel, listener);
    this.#opening ??= this.#open();
    await this.#opening;
    await this.#connection?.query(`LISTEN ${channel}`).catch(() => undefined);
  }

  /** Ends the connection if no other channel needs it. Returns whether it is ended. */
  async remove(channel: string): Promise<boolean> {
    this.#listeners.delete(channel);
    if (this.#listeners.size > 0) return false;
    clearTimeout(this.#again);
    await this.#opening;
    await this.#connection?.end().catch(() => undefined);
    return true;
  }

  async #open(): Promise<void> {
    let opened: Awaited<ReturnType<typeof this.connect>> | undefined;
    try {
      opened = await this.connect();
      opened.on('notification', ({ channel, payload }) => this.#listeners.get(channel)?.(payload ?? ''));
      opened.on('error', () => undefined);
      opened.on('end', () => this.#later());
      for (const channel of this.#listeners.keys()) await opened.query(`LISTEN ${channel}`);
      this.#connection = opened;
      if (this.#listeners.size === 0) await opened.end();
    } catch (error) {
      this.log.warn(
        { reason: String(error) },
        'notifications cannot be received from Postgres; the process polls instead',
      );
      await opened?.end().catch(() => undefined);
      this.#later();
    }
  }

  #later(): void {
    this.#connection = undefined;
    if (this.#listeners.size === 0) return;
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#opening = this.#open();
    }, CONNECT_AGAIN_MS);
  }
}
