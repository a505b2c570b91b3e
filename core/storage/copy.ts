import type { Knex } from 'knex';
import { type Client, type Connection, Query } from 'pg';
import type { CopyRows } from './copy-rows';

/** What `pg` has for COPY and its types leave out. */
type CopyConnection = Connection & {
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
};

/** A query of `pg` that sends rows when Postgres asks for them. */
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

/** Returns whether rows can be copied into this database. The embedded one only takes statements. */
export function canCopy({ client }: Configured): boolean {
  return client?.config.client === 'pg';
}

/** Copies rows into a table; `into` is its name with the columns of the rows. Does nothing if there are none. */
export async function copyInto(trx: Knex.Transaction, into: string, rows: CopyRows): Promise<void> {
  if (rows.count === 0) return;
  const client: Client = await trx.client.acquireConnection();
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | undefined) => (error instanceof Error ? reject(error) : resolve());
    client.query(new CopyIn(`COPY ${into} FROM STDIN (FORMAT binary)`, rows.finish(), done));
  });
}
