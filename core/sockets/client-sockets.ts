import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Gauge } from 'prom-client';
import { WebSocketServer } from 'ws';
import type { CallKey } from '../accounts/identify';
import type { UpgradeHandler } from '../api/route';
import { fail } from '../base/errors';
import { metrics } from '../base/metrics';
import { sessionOf } from '../calls/session-ids';
import { ClientSocket, type SocketClient, type SocketTimes } from './client-socket';
import { Deliveries } from './delivery';
import { checkHandshake } from './handshake';
import { InnerClient, type InnerServer, innerServer } from './inner-client';

export interface SocketSettings extends SocketTimes {
  /** The maximum number of open WebSockets of one API key in this process. */
  readonly maxPerKey: number;
  readonly maxFrameBytes: number;
}

interface ClientSocketsOptions {
  readonly listener: Server;
  readonly identify: (request: IncomingMessage) => Promise<CallKey>;
  readonly isStopping: () => boolean;
  readonly settings: SocketSettings;
}

const openSockets = new Gauge({
  name: 'tollgate_web_sockets',
  help: 'Open WebSockets of clients.',
  aggregator: 'sum',
  registers: [metrics],
});

/** How long a client may take to acknowledge the close of its socket. */
const CLOSES_WITHIN_MS = 2_000;

/** The WebSockets of this process's clients. */
export class ClientSockets {
  readonly #calls: InnerServer;
  readonly #server: WebSocketServer;
  readonly #open = new Set<ClientSocket>();
  readonly #countOfKeys = new Map<string, number>();
  readonly #deliveries = new Deliveries();
  #opened = 0;
  #whenNone: (() => void) | undefined;

  constructor(private readonly options: ClientSocketsOptions) {
    this.#calls = innerServer(options.listener);
    const ofServer = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.settings.maxFrameBytes,
      closeTimeout: CLOSES_WITHIN_MS,
      // The gateway supports no subprotocol. Without this handler, `ws` would accept the first one that a client offers.
      handleProtocols: () => false as const,
    };
    this.#server = new WebSocketServer(ofServer);
  }

  /**
   * Opens a WebSocket for calls.
   * @throws MALFORMED_REQUEST, INVALID_API_KEY, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE, CONCURRENCY_LIMIT, DRAINING
   */
  readonly upgrade: UpgradeHandler = async (_visit, request, socket, head) => {
    const { identify, isStopping, settings } = this.options;
    if (isStopping()) throw fail('DRAINING', { retryAfterSeconds: 1 });
    checkHandshake(request);
    const key = await identify(request);
    if (isStopping()) throw fail('DRAINING', { retryAfterSeconds: 1 });
    if (socket.destroyed) return;
    const leave = this.#enter(key.keyId, settings.maxPerKey);
    socket.once('close', leave);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const carrier = socket as Socket;
      const calls = new InnerClient(request, carrier, this.#calls);
      const client = new ClientSocket(webSocket, carrier, calls, settings, this.#clientOf(key, request));
      this.#open.add(client);
      openSockets.inc();
      webSocket.once('close', () => this.#forget(client));
    });
  };

  /** Closes each socket after its response under way, because the process is stopping. */
  leave(): void {
    for (const client of this.#open) client.leave('the process stops');
  }

  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenNone = resolve;
      if (this.#open.size === 0) resolve();
    });
  }

  /** Returns the client of a WebSocket. Its session is the one that the handshake names, per API key and URL. Without a name each WebSocket is a session. */
  #clientOf({ keyId, accountId }: CallKey, { headers, url }: IncomingMessage): SocketClient {
    this.#opened += 1;
    const named = sessionOf(headers);
    const session = JSON.stringify(named === undefined ? [this.#opened] : [keyId, headers.host, url, named]);
    return { accountId, session, mayReturn: named !== undefined, deliveries: this.#deliveries };
  }

  #enter(keyId: string, limit: number): () => void {
    const count = this.#countOfKeys.get(keyId) ?? 0;
    if (count >= limit)
      throw fail('CONCURRENCY_LIMIT', {
        retryAfterSeconds: 1,
        message: 'This key has reached its limit of open WebSockets at this node. Close one first.',
        details: { of: 'key', limit },
      });
    this.#countOfKeys.set(keyId, count + 1);
    return () => {
      const left = (this.#countOfKeys.get(keyId) ?? 1) - 1;
      if (left > 0) this.#countOfKeys.set(keyId, left);
      else this.#countOfKeys.delete(keyId);
    };
  }

  #forget(client: ClientSocket): void {
    this.#open.delete(client);
    openSockets.dec();
    if (this.#open.size === 0) this.#whenNone?.();
  }
}
