import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import httpProxy from 'http-proxy';
import type { Logger } from 'pino';
import { startLoop } from '../../../core/loop';
import type { Stop } from '../../../core/resources';
import { describeFault } from '../../../core/thrown';
import { type Timed, touchSandbox } from '../books/store';
import type { PortAddress } from '../suppliers/supplier';
import { noAnswer, relayAnswer, switchingHead } from './instance-answer';
import { headersForInstance, upgradeAtInstance } from './instance-request';
import { openPortRoute, type PortRoute } from './port-route';
import { stillValid } from './tokens';

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

/** A request whose answer has not come yet. */
interface Waiting {
  readonly resolve: (answer: IncomingMessage) => void;
  readonly reject: (cause: unknown) => void;
}

/** How long an open connection may outlive its token or its sandbox, if another process ended that. */
const LOOK_EVERY_MS = 5_000;

/** Relays HTTP and WebSocket to ports of instances. When either side ends, the other is ended too. */
export class PortProxy {
  // `relayAnswer` writes the answer, because the instance chooses every byte and http-proxy would write what Node refuses.
  readonly #proxy = httpProxy.createProxyServer({ changeOrigin: true, ignorePath: true, selfHandleResponse: true });
  readonly #waiting = new WeakMap<ServerResponse, Waiting>();
  readonly #open = new Set<Open>();

  constructor(
    private readonly timed: Timed,
    private readonly log: Logger,
    private readonly isStopping: () => boolean,
  ) {
    this.#proxy.on('proxyReq', (outgoing, request, response) => this.#beginRequest(outgoing, request, response));
    this.#proxy.on('proxyRes', (answer, _request, response) => this.#waiting.get(response)?.resolve(answer));
  }

  /** Relays a request and its answer. @throws SUPPLIER_ERROR if nothing answers as HTTP */
  async pass(request: IncomingMessage, response: ServerResponse, passage: Passage): Promise<void> {
    const route = await routeOf(passage);
    // If the client has already disconnected, no later event would close the route.
    if (response.destroyed) return route.close();
    const forget = this.#remember(passage, () => response.destroy());
    response.once('close', () => {
      forget();
      route.close();
    });
    request.headers = headersForInstance(request);
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      this.#waiting.set(response, { resolve, reject: (cause) => reject(noAnswer(cause)) });
      this.#proxy.web(request, response, { ...route, agent: route.agent as never }, (error) => reject(noAnswer(error)));
    });
    relayAnswer(await answer, response, passage.headers);
  }

  /** Connects the ends of both sides, because http-proxy reports neither a client's disconnect to the instance nor the reverse. */
  #beginRequest(outgoing: ClientRequest, request: IncomingMessage, response: ServerResponse): void {
    response.once('close', () => outgoing.destroy());
    // Read the rest of the client's request after the instance has ended, so that the connection can be reused.
    outgoing.once('close', () => request.resume());
    // If the instance switches protocols unasked, the connection ends without an error.
    outgoing.once('close', () => this.#waiting.get(response)?.reject(undefined));
  }

  /** Relays a request that switches protocols. `response` carries the instance's refusal, if there is one. */
  async passUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    passage: Passage,
    response: ServerResponse,
  ): Promise<void> {
    const route = await routeOf(passage);
    if (socket.destroyed) return route.close();
    const forget = this.#remember(passage, () => socket.destroy());
    socket.once('close', () => {
      forget();
      route.close();
    });
    const outgoing = upgradeAtInstance(request, route);
    socket.once('close', () => outgoing.destroy());
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

  /** Ends connections whose tokens are no longer valid, until it is stopped. */
  run(): Stop {
    const loop = startLoop(() => this.#lookAfter(), {
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      whenFailed: (error) =>
        this.log.error({ error: describeFault(error) }, 'open ports could not be checked; the check is retried'),
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
    // A stopping process waits for answers, and these may be endless.
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

  #remember({ tokenHash, sandboxId }: Passage, end: () => void): () => void {
    const open = { tokenHash, sandboxId, end };
    this.#open.add(open);
    return () => this.#open.delete(open);
  }
}

/** Opens the route to a port. @throws SUPPLIER_ERROR if nothing listens there */
async function routeOf({ address, path }: Passage): Promise<PortRoute> {
  try {
    return await openPortRoute(address, path);
  } catch (cause) {
    throw noAnswer(cause);
  }
}

/** Resolves with the instance's answer. @throws SUPPLIER_ERROR if the instance gives none */
function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (error?: Error) => reject(noAnswer(error));
    outgoing.once('response', resolve);
    // An error after the answer has begun changes nothing here: the answer itself ends early.
    outgoing.on('error', refuse);
    // If the instance switches protocols unasked, the connection ends without an error.
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
