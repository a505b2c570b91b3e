import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { freePort } from './free-port';
import { respond } from './scripts/respond';
import type { RecordedCall, Script } from './scripts/script';
import { until } from './until';
import { takeSockets, type UpstreamSockets } from './upstream-sockets';

export { DEFAULT_USAGE, type Said } from './scripts/answer';
export { type ChatStream, chatAnswer, chatErrorStream, chatFailure, chatStream } from './scripts/chat';
export { type Embedded, embeddedTokens, embeddingsAnswer } from './scripts/embeddings';
export {
  after,
  beforeBody,
  closeBeforeHeaders,
  neverAnswer,
  rawBytes,
  resetBeforeHeaders,
  stallRefusing,
  when,
} from './scripts/faults';
export { geminiAnswer, geminiFailure, geminiStream } from './scripts/gemini';
export {
  messagesAnswer,
  messagesAsAsked,
  messagesErrorStream,
  messagesFailure,
  messagesStream,
} from './scripts/messages';
export { malformedJson, redirect, respond } from './scripts/respond';
export {
  responsesAnswer,
  responsesErrorStream,
  responsesFailedAnswer,
  responsesFailure,
  responsesStream,
} from './scripts/responses';
export type { Exchange, RecordedCall, Script } from './scripts/script';
export { type Cut, type StreamOptions, type StreamScript, stream } from './scripts/stream';

/** A scripted upstream on loopback that records its calls. */
export interface TestUpstream {
  /** The base URL for an upstream's entry, without a path. */
  readonly url: string;
  readonly port: number;
  /** The calls in order of arrival. */
  readonly calls: readonly RecordedCall[];
  /** The number of connections that were ever made, and of those that are open now. */
  readonly connections: number;
  readonly openConnections: number;
  /** Accepts WebSockets from gateways that are configured for it. */
  readonly webSockets: UpstreamSockets;
  /** Queues scripts for the next calls, one each; they come before `always`. */
  next(...scripts: readonly Script[]): void;
  /** Sets the script for calls without a queued one. Without it such a call is answered 500 with an explanation. */
  always(script: Script): void;
  /** Forgets scripts and calls; connections stay open. */
  reset(): void;
  /** Waits until this many calls have arrived and returns the last of them. */
  call(count: number): Promise<RecordedCall>;
  stop(): Promise<void>;
}

export async function startUpstream(): Promise<TestUpstream> {
  const calls: RecordedCall[] = [];
  const queue: Script[] = [];
  const sockets = new Map<Socket, number>();
  let connections = 0;
  let standing = UNSCRIPTED;

  const server = createServer((request, response) => {
    const script = queue.shift() ?? standing;
    const exchange = record(request, response, sockets.get(request.socket) ?? 0);
    calls.push(exchange.call);
    void exchange.run(script);
  });
  server.on('connection', (socket) => {
    connections += 1;
    sockets.set(socket, connections);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  const webSockets = takeSockets(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    calls,
    webSockets,
    get connections() {
      return connections;
    },
    get openConnections() {
      return sockets.size;
    },
    next: (...scripts) => {
      queue.push(...scripts);
    },
    always: (script) => {
      standing = script;
    },
    reset: () => {
      calls.length = 0;
      queue.length = 0;
      standing = UNSCRIPTED;
    },
    call: (count) => until(`the upstream is called ${count} times`, () => calls[count - 1]),
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        for (const socket of sockets.keys()) socket.destroy();
      }),
  };
}

/** Returns the address of an upstream that refuses connections. */
export async function closedPort(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

const UNSCRIPTED = respond({ status: 500, body: { error: { message: 'the test gave this upstream no script' } } });

function record(request: IncomingMessage, response: ServerResponse, connection: number) {
  const { socket } = request;
  const sentBefore = socket.bytesWritten;
  const closed = new AbortController();
  const gone = milestone();
  const ended = milestone();
  let body: Buffer = Buffer.alloc(0);
  let closedEarly = false;
  let broken = false;
  response.once('close', () => {
    if (!response.writableFinished && !broken) {
      closedEarly = true;
      gone.reach();
    }
    closed.abort();
    ended.reach();
  });
  const call: RecordedCall = {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    get body() {
      return body;
    },
    get json() {
      return parsed(body);
    },
    at: Date.now(),
    connection,
    get bytesSent() {
      return socket.bytesWritten - sentBefore;
    },
    get closedEarly() {
      return closedEarly;
    },
    clientGone: gone.reached,
    ended: ended.reached,
  };
  const breaking = (): void => {
    broken = true;
  };
  const run = async (script: Script): Promise<void> => {
    const received = readAll(request).then((bytes) => {
      body = bytes;
    });
    if (script.early !== true) await received;
    if (!closed.signal.aborted) {
      await script.answer({ call, request, response, closed: closed.signal, breaking });
    }
    ended.reach();
  };
  return { call, run };
}

/** Reads all bytes that arrive, even if the client disconnects. */
function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('error', () => undefined);
  return new Promise((done) => {
    for (const event of ['end', 'close']) request.once(event, () => done(Buffer.concat(chunks)));
  });
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function milestone(): { readonly reached: Promise<void>; reach(): void } {
  let reach = (): void => undefined;
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return { reached, reach: () => reach() };
}
