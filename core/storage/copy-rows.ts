import type { Knex } from 'knex';
import { type Client, type Connection, Query } from 'pg';

/** Types of columns that rows are copied into. */
type CopyType = 'text' | 'uuid' | 'timestamptz' | 'int' | 'bigint' | 'boolean' | 'jsonb' | 'numeric';

/** The file header: `PGCOPY`, no flags, no extension. */
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const NOTHING = -1;
const FIRST_BYTES = 1 << 18;
/** Enough bytes for the length and the value of any type except text. */
const SHORT_BYTES = 64;
/** Milliseconds from 1970 to 2000, the year from which Postgres counts. */
const EPOCH_MS = 946_684_800_000;

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;
const INTEGER = /^-?\d{1,18}$/;
const NATURAL = /^\d{1,100}$/;

/** The error for a value that does not have the form of its column's type. A statement may still convert the value. */
export class NotCopyable extends Error {
  override readonly name = 'NotCopyable';
}

/** Writes rows in the binary format of Postgres' COPY. */
export class CopyRows {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #end = HEADER.copy(this.#bytes);
  #rows = 0;

  get count(): number {
    return this.#rows;
  }

  /** Begins a row with this number of values. */
  begin(values: number): void {
    this.#reserve(SHORT_BYTES);
    this.#end = this.#bytes.writeInt16BE(values, this.#end);
    this.#rows += 1;
  }

  /**
   * Adds a value to the row. A time is RFC 3339 with milliseconds in UTC, or milliseconds since 1970.
   *
   * @throws NotCopyable
   */
  add(type: CopyType, value: unknown): void {
    this.#reserve(SHORT_BYTES);
    if (value === undefined || value === null) this.#int32(NOTHING);
    else if (type === 'jsonb') this.#text(`\u0001${JSON.stringify(value)}`);
    else if (typeof value === 'string') this.#addText(type, value);
    else this.#addOther(type, value);
  }

  /** Returns all rows with the end marker. */
  finish(): Buffer {
    this.#reserve(SHORT_BYTES);
    this.#end = this.#bytes.writeInt16BE(NOTHING, this.#end);
    return this.#bytes.subarray(0, this.#end);
  }

  #addText(type: CopyType, value: string): void {
    if (type === 'text') this.#text(value);
    else if (type === 'uuid' && UUID.test(value)) this.#uuid(value);
    else if (type === 'timestamptz' && ISO_TIME.test(value)) this.#time(Date.parse(value));
    else if (type === 'bigint' && INTEGER.test(value)) this.#bigint(Number(value), value);
    else if (type === 'numeric' && NATURAL.test(value)) this.#numeric(value);
    else throw new NotCopyable(`a text of ${value.length} characters is no ${type}`);
  }

  #addOther(type: CopyType, value: unknown): void {
    if (type === 'boolean' && typeof value === 'boolean') this.#boolean(value);
    else if (type === 'int' && typeof value === 'number' && value === (value | 0)) this.#int(value);
    else if (type === 'bigint' && Number.isSafeInteger(value)) this.#bigint(value as number);
    else if (type === 'timestamptz' && Number.isSafeInteger(value)) this.#time(value as number);
    else throw new NotCopyable(`${JSON.stringify(value)} is no ${type}`);
  }

  #text(value: string): void {
    this.#reserve(value.length * 3);
    const written = this.#bytes.write(value, this.#end + 4);
    this.#int32(written);
    this.#end += written;
  }

  #uuid(value: string): void {
    this.#int32(16);
    this.#end += this.#bytes.write(value.replaceAll('-', ''), this.#end, 'hex');
  }

  #boolean(value: boolean): void {
    this.#int32(1);
    this.#end = this.#bytes.writeInt8(value ? 1 : 0, this.#end);
  }

  #int(value: number): void {
    this.#int32(4);
    this.#int32(value);
  }

  #time(ms: number): void {
    this.#bigint((ms - EPOCH_MS) * 1_000);
  }

  /** Writes a BIGINT. `text` is the same number as decimal text, because a BIGINT may have more digits than a double can hold. */
  #bigint(value: number, text?: string): void {
    this.#int32(8);
    if (Number.isSafeInteger(value)) {
      this.#int32(Math.floor(value / 2 ** 32));
      this.#end = this.#bytes.writeUInt32BE(value >>> 0, this.#end);
    } else if (text !== undefined) this.#end = this.#bytes.writeBigInt64BE(BigInt(text), this.#end);
    else throw new NotCopyable('a time is out of range');
  }

  /** Writes a NUMERIC as groups of four digits; the first group may have fewer. */
  #numeric(digits: string): void {
    const groups = Math.ceil(digits.length / 4);
    const first = digits.length - (groups - 1) * 4;
    this.#int32(8 + 2 * groups);
    this.#int16(groups);
    this.#int16(groups - 1);
    this.#int32(0);
    for (let end = first; end <= digits.length; end += 4) this.#int16(Number(digits.slice(Math.max(0, end - 4), end)));
  }

  #int16(value: number): void {
    this.#end = this.#bytes.writeInt16BE(value, this.#end);
  }

  #int32(value: number): void {
    this.#end = this.#bytes.writeInt32BE(value, this.#end);
  }

  #reserve(more: number): void {
    const needed = this.#end + more + SHORT_BYTES;
    if (needed <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(bytes, 0, 0, this.#end);
    this.#bytes = bytes;
  }
}

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

/** Returns whether this database supports COPY. The embedded database supports statements only. */
export function canCopy({ client }: Configured): boolean {
  return client?.config.client === 'pg';
}

/** Copies rows into a table. `into` is the table's name with the columns of the rows. Does nothing without rows. */
export async function copyInto(trx: Knex.Transaction, into: string, rows: CopyRows): Promise<void> {
  if (rows.count === 0) return;
  const client: Client = await trx.client.acquireConnection();
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | undefined) => (error instanceof Error ? reject(error) : resolve());
    client.query(new CopyIn(`COPY ${into} FROM STDIN (FORMAT binary)`, rows.finish(), done));
  });
}
