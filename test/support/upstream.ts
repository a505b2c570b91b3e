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

/** An upstream on loopback that does what the test tells it, and remembers what it was asked. */
export interface TestUpstream {
  /** Without a path: the base URL of an upstream's entry. */
  readonly url: string;
  readonly port: number;
  /** In the order they came. */
  readonly calls: readonly RecordedCall[];
  /** Connections that were ever made, and those open now. */
  readonly connections: number;
  readonly openConnections: number;
  /** It takes WebSockets too, from gateways that are told so. */
  readonly webSockets: UpstreamSockets;
  /** For the next calls, one script each; they go before `always`. */
  next(...scripts: readonly Script[]): void;
  /** For every call that no `next` is left for. Without it such a call is answered 500 and says so. */
  always(script: Script): void;
  /** Forgets scripts and calls; connections stay. */
  reset(): void;
  /** Waits until that many calls have come (1: the first) and gives the last of them. */
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

/** The address of an upstream that refuses connections. */
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

/** All bytes that came, also when the client left in the middle of them. */
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
