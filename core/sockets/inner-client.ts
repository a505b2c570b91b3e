import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { Client } from 'undici';
import type { EditedBody } from '../wire/body-edits';
import { Exchange } from '../wire/exchange';
import { connectTo, InnerConnection } from '../wire/inner-connection';
import type { UpstreamExchange } from '../wire/upstream-exchange';
import { UpstreamSocket } from '../wire/upstream-socket';
import { headersOfCalls, socketBeta } from './handshake';

/** The server of calls that clients send over WebSockets. */
export interface InnerServer {
  take(connection: InnerConnection): void;
}

/** Returns a server that handles calls as the public listener handles a POST. Its in-process connections count towards no limit. */
export function innerServer(listener: Server): InnerServer {
  const server = createServer((request, response) => listener.emit('request', request, response));
  return { take: (connection) => server.emit('connection', connection) };
}

/** The size of the pieces in which a body is sent, so that the reader can serve other calls between two pieces. */
const PIECE_BYTES = 64 * 1024;

/** Sends the calls of one client's WebSocket, each as a POST on a connection of its own. */
export class InnerClient {
  readonly #path: string;
  readonly #headers: string[];
  readonly #upstreamSocket: UpstreamSocket;
  readonly #client: Client;

  constructor(handshake: IncomingMessage, carrier: Socket, server: InnerServer) {
    this.#path = handshake.url ?? '/';
    this.#headers = headersOfCalls(handshake);
    this.#upstreamSocket = new UpstreamSocket(socketBeta(handshake));
    this.#client = new Client('http://within.the.process', {
      connect: (_, done) => {
        const connection = new InnerConnection(carrier, this.#upstreamSocket);
        const end = connectTo(connection);
        server.take(connection);
        // undici expects an asynchronous callback. A plain stream can serve as its socket, because undici uses only members that every stream has.
        process.nextTick(done, null, end);
      },
      // This timeout is off, because the gateway itself limits the time of its calls.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  post({ chunks, byteLength }: EditedBody): UpstreamExchange {
    return new Exchange(this.#client, {
      method: 'POST',
      path: this.#path,
      headers: [...this.#headers, 'content-length', String(byteLength)],
      body: Readable.from(pieces(chunks)),
      reset: true,
    });
  }

  close(): void {
    this.#upstreamSocket.release();
    this.#client.destroy().catch(() => undefined);
  }
}

function* pieces(chunks: readonly Buffer[]): Generator<Buffer> {
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) yield chunk.subarray(at, at + PIECE_BYTES);
  }
}
