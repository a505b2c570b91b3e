import type { Socket } from 'node:net';
import type { Knex } from 'knex';

/** The members of a connection of `pg` that this file uses. */
export interface Connection {
  readonly connection: { readonly stream: Socket };
  /** Whether the connection is idle: false while a statement runs. */
  readonly readyForQuery: boolean;
}

/**
 * Ends a connection that is silent for `silentMs` while a statement runs. If the host of Postgres or the network fails, this
 * process gets no message that the connection has ended. The operating system would end it only after about 15 minutes.
 */
export function endIfSilent(client: Connection, silentMs: number): void {
  const { stream } = client.connection;
  stream.setTimeout(silentMs);
  stream.on('timeout', () => {
    const { bytesRead } = stream;
    // After a stall, this process runs its timers before it reads the data that arrived meanwhile. The check therefore waits
    // until these data are read.
    setImmediate(() => {
      if (client.readyForQuery || stream.bytesRead > bytesRead) return;
      stream.destroy(Object.assign(new Error(`Postgres was silent for ${silentMs} ms`), { code: 'ETIMEDOUT' }));
    });
  });
}

/** Runs a transaction whose statements may take any time. Its connection may be silent until Postgres has answered the commit. */
export async function withoutTimeLimit<T>(
  database: Knex,
  work: (transaction: Knex.Transaction) => Promise<T>,
): Promise<T> {
  let stream: Socket | undefined;
  let silentMs = 0;
  try {
    return await database.transaction(async (transaction) => {
      await transaction.raw('SET LOCAL statement_timeout = 0');
      // The members are optional, because a connection of PGlite has no stream.
      const client = transaction.client as { acquireConnection(): Promise<Partial<Connection>> };
      stream = (await client.acquireConnection()).connection?.stream;
      silentMs = stream?.timeout ?? 0;
      stream?.setTimeout(0);
      return work(transaction);
    });
  } finally {
    stream?.setTimeout(silentMs);
  }
}
