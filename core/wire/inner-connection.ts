import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { UpstreamSocket } from './upstream-socket';

type Written = (error?: Error | null) => void;

/** One end of a connection within the process. The other end reads what is written here, at the speed of its reader. */
class InnerEnd extends Duplex {
  protected other: InnerEnd | undefined;
  #written: Written | undefined;

  join(other: InnerEnd): void {
    this.other = other;
  }

  override _read(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: Written): void {
    if (this.other === undefined || this.other.destroyed || chunk.length === 0) return void process.nextTick(written);
    this.other.#written = written;
    this.other.push(chunk);
  }

  override _final(done: Written): void {
    if (this.other?.destroyed === false) this.other.push(null);
    done();
  }

  override _destroy(error: Error | null, done: Written): void {
    const { other } = this;
    if (other !== undefined && !other.destroyed) process.nextTick(() => other.destroy());
    done(error);
  }
}

/** The server's end of a connection that carries a call from a client's WebSocket. */
export class InnerConnection extends InnerEnd {
  constructor(
    readonly carrier: Socket,
    readonly upstreamSocket: UpstreamSocket,
  ) {
    super();
  }

  get remoteAddress(): string | undefined {
    return this.carrier.remoteAddress;
  }
}

/** Makes a connection to `server`. Returns its other end, through which the client sends the call. */
export function connectTo(server: InnerConnection): Duplex {
  const client = new InnerEnd();
  client.join(server);
  server.join(client);
  return client;
}

/** Returns the socket to an upstream that belongs to the client's WebSocket of a call; undefined for a call over HTTP. */
export function upstreamSocketOf({ socket }: Pick<IncomingMessage, 'socket'>): UpstreamSocket | undefined {
  return socket instanceof InnerConnection ? (socket as InnerConnection).upstreamSocket : undefined;
}
