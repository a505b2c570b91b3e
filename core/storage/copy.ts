import type { Knex } from 'knex';
import { type Client, type Connection, Query } from 'pg';
import type { CopyRows } from './copy-rows';

/** The members of a `pg` connection for COPY, which its types omit. */
type CopyConnection = Connection & {
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
};

/** A query of `pg` that sends its rows when Postgres asks for them. */
class CopyIn extends Query {
  readonly #rows: Uint8Array;

  constructor(text: string, rows: Uint8Array, done: (error: Error | undefined) => void) {
    super(text, done);
    this.#rows = rows;
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#rows);
    connection.endCopyFrom();
  }
}

interface Configured {
  readonly client?: { readonly config: Pick<Knex.Config, 'client'> };
}

/** Returns whether this database takes COPY. The embedded one takes statements only. */
export function canCopy({ client }: Configured): boolean {
  return client?.config.client === 'pg';
}

/** Copies rows into a table. `into` is its name with the columns of the rows. Does nothing without rows. */
export async function copyInto(trx: Knex.Transaction, into: string, rows: CopyRows): Promise<void> {
  if (rows.count === 0) return;
  const client: Client = await trx.client.acquireConnection();
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | undefined) => (error instanceof Error ? reject(error) : resolve());
    client.query(new CopyIn(`COPY ${into} FROM STDIN (FORMAT binary)`, rows.finish(), done));
  });
}
