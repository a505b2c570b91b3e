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
  /** What the instance sees as path and query. */
  readonly path: string;
  readonly tokenHash: string;
  readonly sandboxId: string;
  /** Headers of the answer beside the instance's own. */
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

/** How long a passage may outlive its token, or its sandbox, that ended elsewhere. */
const LOOK_EVERY_MS = 5_000;

/** Passes HTTP and WebSocket on to ports of instances. Either side that ends, ends the other. */
export class PortProxy {
  // The answer is relayed by us: the instance decides every byte of it, and http-proxy would repeat what Node refuses.
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

  /** @throws SUPPLIER_ERROR when nothing answers as HTTP. */
  async pass(request: IncomingMessage, response: ServerResponse, passage: Passage): Promise<void> {
    const route = await routeOf(passage);
    // The client may have left meanwhile: nobody would end what was opened for it.
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

  /** http-proxy does not tell the instance that the client has left, nor the client that the instance has. */
  #beginRequest(outgoing: ClientRequest, request: IncomingMessage, response: ServerResponse): void {
    response.once('close', () => outgoing.destroy());
    // A client that still sends when the instance has ended is read, so that its connection can be used again.
    outgoing.once('close', () => request.resume());
    // A switch of protocols that was not asked for ends the connection without an error.
    outgoing.once('close', () => this.#waiting.get(response)?.reject(undefined));
  }

  /** The same for a connection that becomes another protocol's; the response is for an answer that refuses that. */
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

  /** Ends what is open for tokens that are valid no more, until it is stopped. */
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

  /** What is open for these tokens ends now. */
  async endRevoked(): Promise<void> {
    if (this.#open.size === 0) return;
    const valid = await stillValid(this.timed, [...new Set([...this.#open].map(({ tokenHash }) => tokenHash))]);
    for (const { tokenHash, end } of this.#open) if (!valid.has(tokenHash)) end();
  }

  async #lookAfter(): Promise<void> {
    // A process that is to stop waits for answers, and these may be without end.
    if (this.isStopping()) this.#endAll();
    await this.endRevoked();
    await this.#touch();
  }

  /** Whoever has a port open uses the sandbox, however long. */
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

/** @throws SUPPLIER_ERROR when nothing listens at the port. */
async function routeOf({ address, path }: Passage): Promise<PortRoute> {
  try {
    return await openPortRoute(address, path);
  } catch (cause) {
    throw noAnswer(cause);
  }
}

/** @throws SUPPLIER_ERROR when the instance gives none. */
function answerOf(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = (error?: Error) => reject(noAnswer(error));
    outgoing.once('response', resolve);
    // Also after an answer has begun, where it changes nothing: the answer itself breaks off.
    outgoing.on('error', refuse);
    // A switch of protocols that was not asked for ends the connection without an error.
    outgoing.once('close', refuse);
  });
}

/** Two connections become one: what comes from each goes to the other, and each that ends, ends the other. */
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
