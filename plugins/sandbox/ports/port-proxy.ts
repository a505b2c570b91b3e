import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import httpProxy from 'http-proxy';
import type { Logger } from 'pino';
import { fail } from '../../../core/errors';
import type { PortAddress } from '../../../core/supplier';
import { describeFault } from '../../../core/thrown';
import { type Timed, touchSandbox } from '../store';
import { stillValid, TOKEN_HEADER } from './tokens';
import { openWay, type Way } from './way';

/** Never given to an instance: they open the gateway, or belong to whoever else is served under its name. */
const CLIENTS_OWN = [
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'svc-key',
  'cookie',
  'forwarded',
  TOKEN_HEADER,
];
/** Never taken from an instance: they would speak for the whole origin. */
const ORIGINS_OWN = [
  'set-cookie',
  'www-authenticate',
  'proxy-authenticate',
  'strict-transport-security',
  'clear-site-data',
  'public-key-pins',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'x-svc-source',
  'x-svc-request-id',
];

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

/** How long a passage may outlive its token, or its sandbox, that ended elsewhere. */
const LOOK_EVERY_MS = 5_000;

/** Passes HTTP and WebSocket on to ports of instances. Either side that ends, ends the other. */
export class PortProxy {
  // One connection per request: another instance may get the address of one that has ended.
  readonly #proxy = httpProxy.createProxyServer({ changeOrigin: true, agent: false as never, ignorePath: true });
  readonly #passages = new WeakMap<IncomingMessage, Passage>();
  readonly #open = new Set<Open>();

  constructor(
    private readonly timed: Timed,
    private readonly log: Logger,
    private readonly isDraining: () => boolean,
  ) {
    this.#proxy.on('proxyReq', (outgoing, incoming, response) => this.#beginRequest(outgoing, incoming, response));
    this.#proxy.on('proxyRes', (answer, incoming, response) => this.#beginAnswer(answer, incoming, response));
    this.#proxy.on('proxyReqWs', (outgoing, incoming, socket) => this.#beginUpgrade(outgoing, incoming, socket));
  }

  /** @throws SUPPLIER_ERROR when nothing answers. Resolves when the answer has been given, or has broken off. */
  async pass(request: IncomingMessage, response: ServerResponse, passage: Passage): Promise<void> {
    const { close, ...way } = await wayOf(passage);
    if (response.destroyed) return close();
    this.#passages.set(request, passage);
    const forget = this.#remember(passage, () => response.destroy());
    return new Promise((resolve, reject) => {
      response.once('close', () => {
        forget();
        resolve();
      });
      this.#proxy.web(request, response, way, (error) => {
        if (response.headersSent || response.destroyed) response.destroy();
        else reject(noAnswer(error));
      });
    });
  }

  /** The same for a connection that becomes another protocol's. */
  async passUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, passage: Passage): Promise<void> {
    const { close, ...way } = await wayOf(passage);
    if (socket.destroyed) return close();
    this.#passages.set(request, passage);
    const forget = this.#remember(passage, () => socket.destroy());
    socket.once('close', forget);
    return new Promise((resolve, reject) => {
      socket.once('close', resolve);
      this.#proxy.ws(request, socket as never, head, way, (error) => reject(noAnswer(error)));
    });
  }

  /** Ends what is open for tokens that are valid no more, until it is stopped. */
  run(): () => Promise<void> {
    const stop = new AbortController();
    const going = this.#endInvalid(stop.signal);
    return async () => {
      stop.abort();
      this.#endAll();
      await going;
    };
  }

  /** What is open for these tokens ends now. */
  async endRevoked(): Promise<void> {
    if (this.#open.size === 0) return;
    const valid = await stillValid(this.timed, [...new Set([...this.#open].map(({ tokenHash }) => tokenHash))]);
    for (const { tokenHash, end } of this.#open) if (!valid.has(tokenHash)) end();
  }

  async #endInvalid(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
      // A process that is to stop waits for answers, and these may be without end.
      if (this.isDraining()) this.#endAll();
      await this.endRevoked()
        .then(() => this.#touch())
        .catch((error: unknown) =>
          this.log.error({ error: describeFault(error) }, 'open ports could not be looked after'),
        );
    }
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

  #beginRequest(outgoing: ClientRequest, incoming: IncomingMessage, response: ServerResponse): void {
    this.#strip(outgoing, incoming);
    // http-proxy does not tell the instance that the client has left.
    response.once('close', () => outgoing.destroy());
  }

  #beginAnswer(answer: IncomingMessage, incoming: IncomingMessage, response: ServerResponse): void {
    for (const name of ORIGINS_OWN) delete answer.headers[name];
    Object.assign(answer.headers, this.#passages.get(incoming)?.headers);
    // Nor the client that the instance has: half an answer must not look whole, nor wait for ever.
    answer.once('close', () => {
      if (!answer.complete) response.destroy();
    });
  }

  #beginUpgrade(outgoing: ClientRequest, incoming: IncomingMessage, socket: Duplex): void {
    this.#strip(outgoing, incoming);
    const strip = (answer: IncomingMessage) => {
      for (const name of ORIGINS_OWN) delete answer.headers[name];
      Object.assign(answer.headers, this.#passages.get(incoming)?.headers);
    };
    socket.once('close', () => outgoing.destroy());
    outgoing.once('response', strip);
    outgoing.once('upgrade', (answer, other) => {
      strip(answer);
      other.once('close', () => socket.destroy());
      socket.once('close', () => other.destroy());
    });
  }

  #strip(outgoing: ClientRequest, incoming: IncomingMessage): void {
    for (const name of outgoing.getHeaderNames()) {
      if (CLIENTS_OWN.includes(name) || name.startsWith('x-forwarded-')) outgoing.removeHeader(name);
    }
    const { address } = this.#passages.get(incoming) ?? {};
    for (const [name, value] of Object.entries(address?.headers ?? {})) outgoing.setHeader(name, value);
  }
}

/** @throws SUPPLIER_ERROR */
async function wayOf({ address, path }: Passage): Promise<Way> {
  try {
    return await openWay(address, path);
  } catch (error) {
    throw noAnswer(error as Error);
  }
}

function noAnswer(cause: Error) {
  return fail('SUPPLIER_ERROR', { message: 'Nothing in the sandbox answers at this port.', cause });
}
