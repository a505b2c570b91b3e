import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestOf,
  type ServerResponse,
} from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import httpProxy from 'http-proxy';
import type { Logger } from 'pino';
import { startLoop } from '../../../core/base/loop';
import type { Stop } from '../../../core/base/resources';
import { safeErrorFields } from '../../../core/base/safe-error';
import type { Egress } from '../../../core/wire/egress';
import { type Timed, touchSandbox } from '../store/queries';
import type { PortAddress } from '../suppliers/supplier';
import { noAnswer, relayAnswer, switchingHead } from './instance-answer';
import { stillValid, TOKEN_HEADER } from './tokens';

export interface Passage {
  readonly address: PortAddress;
  /** The path and query that the instance sees. */
  readonly path: string;
  readonly tokenHash: string;
  readonly sandboxId: string;
  /** Headers that the gateway adds to the instance's answer. */
  readonly headers: Readonly<Record<string, string>>;
}

interface Open {
  readonly tokenHash: string;
  readonly sandboxId: string;
  readonly end: () => void;
}

/** How long a connection may stay open after another process has revoked its token or ended its sandbox. */
const LOOK_EVERY_MS = 5_000;
const CONNECTED_WITHIN_MS = 10_000;

/** Relays HTTP and WebSocket between clients and ports of instances. When the client or the instance disconnects, the other connection is ended too. */
export class PortProxy {
  readonly #open = new Set<Open>();

  constructor(
    private readonly timed: Timed,
    private readonly log: Logger,
    private readonly isStopping: () => boolean,
    private readonly egress: Pick<Egress, 'dial'>,
  ) {}

  /** Relays a request and its answer. @throws SUPPLIER_ERROR if nothing answers as HTTP */
  async pass(request: IncomingMessage, response: ServerResponse, passage: Passage): Promise<void> {
    const connection = await this.#connect(passage);
    // If the client has already disconnected, end the connection to the instance now, because the response emits no further `close` event.
    if (response.destroyed) return void connection.destroy();
    const forget = this.#remember(passage, () => response.destroy());
    response.once('close', () => {
      forget();
      connection.destroy();
    });
    const { address, path, headers } = passage;
    const target = { host: address.host, port: address.port };
    const agent = new ConnectedAgent(connection) as never;
    // Let `relayAnswer` write the answer. The instance chooses every byte, and http-proxy would also try to write bytes that Node rejects with an
    // error.
    const proxy = httpProxy.createProxyServer({ target, agent, ignorePath: true, selfHandleResponse: true });
    request.headers = { ...headersForInstance(request, address), connection: 'close' };
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      proxy.once('proxyReq', (outgoing) => {
        // Set the path here, because http-proxy would build it by joining texts. The instance gets exactly the path bytes of `passage`.
        outgoing.path = path;
        // Read the rest of the client's request after the instance has ended, so that the connection can be reused.
        outgoing.once('close', () => request.resume());
        // Reject on close too, because the connection ends without an error if the instance switches protocols unasked.
        outgoing.once('close', () => reject(noAnswer(undefined)));
      });
      proxy.once('proxyRes', resolve);
      proxy.web(request, response, {}, (error) => reject(noAnswer(error)));
    });
    relayAnswer(await answer, response, headers);
  }

  /** Relays a request that switches protocols. `response` carries the instance's refusal, if there is one. */
  async passUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    passage: Passage,
    response: ServerResponse,
  ): Promise<void> {
    const connection = await this.#connect(passage);
    if (socket.destroyed) return void connection.destroy();
    const forget = this.#remember(passage, () => socket.destroy());
    socket.once('close', () => {
      forget();
      connection.destroy();
    });
    const { address, path } = passage;
    const headers = { ...headersForInstance(request, address), connection: 'Upgrade' };
    // Do not use http-proxy here, because it would relay any answer of the instance unchecked.
    const outgoing = requestOf({ path, method: request.method, headers, agent: new ConnectedAgent(connection) });
    const switched = new Promise<undefined>((resolve) => {
      outgoing.once('upgrade', (answer: IncomingMessage, other: Duplex, begun: Buffer) => {
        socket.write(switchingHead(answer, passage.headers));
        if (head.length > 0) socket.unshift(head);
        if (begun.length > 0) other.unshift(begun);
        join(socket, other);
        resolve(undefined);
      });
    });
    outgoing.end();
    const refusal = await Promise.race([switched, answerOf(outgoing)]);
    if (refusal !== undefined) relayAnswer(refusal, response, passage.headers);
  }

  /** Starts the loop that ends connections whose tokens are no longer valid. Returns the function that stops the loop. */
  run(): Stop {
    const loop = startLoop(() => this.#lookAfter(), {
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      whenFailed: (error) =>
        this.log.error({ error: safeErrorFields(error) }, 'open ports could not be checked; the check is retried'),
    });
    return async () => {
      this.#endAll();
      await loop.stop();
    };
  }

  /** Ends the open connections whose tokens are no longer valid. */
  async endRevoked(): Promise<void> {
    if (this.#open.size === 0) return;
    const valid = await stillValid(this.timed, [...new Set([...this.#open].map(({ tokenHash }) => tokenHash))]);
    for (const { tokenHash, end } of this.#open) if (!valid.has(tokenHash)) end();
  }

  async #lookAfter(): Promise<void> {
    // End all connections when the process is stopping, because a stopping process waits for answers, which may be endless.
    if (this.isStopping()) this.#endAll();
    await this.endRevoked();
    await this.#touch();
  }

  /** Marks the sandboxes of open connections as in use, however long these stay open. */
  async #touch(): Promise<void> {
    for (const id of new Set([...this.#open].map(({ sandboxId }) => sandboxId))) await touchSandbox(this.timed, id);
  }

  #endAll(): void {
    for (const { end } of this.#open) end();
  }

  /** Opens a connection to the port: to the host and port that the driver returned, or through the driver itself. */
  async #connect({ address }: Passage): Promise<Socket> {
    try {
      return await (address.connect?.() ?? this.egress.dial(address, CONNECTED_WITHIN_MS));
    } catch (cause) {
      throw noAnswer(cause);
    }
  }

  #remember({ tokenHash, sandboxId }: Passage, end: () => void): () => void {
    const open = { tokenHash, sandboxId, end };
    this.#open.add(open);
    return () => this.#open.delete(open);
  }
}

/** Resolves with the instance's answer. @throws SUPPLIER_ERROR if the instance gives none */
function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (error?: Error) => reject(noAnswer(error));
    outgoing.once('response', resolve);
    outgoing.on('error', refuse);
    // Reject on close too, because the connection ends without an error if the instance switches protocols unasked.
    outgoing.once('close', refuse);
  });
}

/** Joins two connections: each receives what the other sends, and the end of one ends the other. */
function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    if (from instanceof Socket) from.setNoDelay(true).setKeepAlive(true);
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroy());
    from.pipe(to);
  }
}

/** Headers never sent to an instance, because they are meant for the gateway or for other services under its name. Most hold credentials. */
const CLIENTS_OWN = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'svc-key',
  'cookie',
  'forwarded',
  TOKEN_HEADER,
  // The instance gets its own address as the host.
  'host',
  // The gateway itself has already answered the client's `Expect` header.
  'expect',
]);

/** Returns the headers for an instance: those of the client, except the ones meant for the gateway, and those that the port needs. */
function headersForInstance(
  { headers }: IncomingMessage,
  { host, port, tls, headers: own }: PortAddress,
): IncomingHttpHeaders {
  const passed = Object.entries(headers).filter(([name]) => !CLIENTS_OWN.has(name) && !name.startsWith('x-forwarded-'));
  const name = host.includes(':') ? `[${host}]` : host;
  return { ...Object.fromEntries(passed), host: port === (tls === true ? 443 : 80) ? name : `${name}:${port}`, ...own };
}

/** An HTTP agent that sends one request over a connection that is already open. */
class ConnectedAgent extends Agent {
  constructor(private readonly socket: Socket) {
    super();
  }

  override createConnection(): Socket {
    return this.socket;
  }
}
