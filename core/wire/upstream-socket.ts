import type { Duplex } from 'node:stream';
import WebSocket, { type ClientOptions } from 'ws';
import type { Candidate, Upstream } from '../catalog/catalog';
import type { BodyEdit, Credential } from '../catalog/upstream';
import { type Outgoing, outgoing, type UpstreamCall } from './ask-upstream';
import { noteProgress } from './dial-failure';
import type { Egress } from './egress';
import { shownCredential, urlAt } from './signed-headers';
import { answerIn, SocketExchange, SocketLost } from './socket-exchange';
import type { UpstreamExchange } from './upstream-exchange';

/** The maximum size of a frame from an upstream. No event of the protocol is nearly as long. */
const MAX_FRAME_BYTES = 8 * 1_024 * 1_024;
/** How long an upstream may take to confirm the close of a socket. */
const CLOSES_WITHIN_MS = 2_000;

/** The changes that turn the body of a POST into a `response.create` frame: members to drop or set. */
const AS_FRAME: readonly BodyEdit[] = [
  { member: 'type', set: '"response.create"' },
  { member: 'stream', drop: true },
];

type AskedCandidate = Pick<Candidate, 'upstream' | 'model' | 'adapter'>;

/**
 * The one socket to an upstream that belongs to a client's WebSocket. The first call to an upstream with WebSocket opens it. It stays open,
 * because the upstream caches answers that it does not store, and only for this socket.
 */
export class UpstreamSocket {
  #link: Link | undefined;
  #isReleased = false;

  /** `beta`: the version of the WebSocket protocol in the client's `openai-beta`. */
  constructor(private readonly beta: string | undefined) {}

  /** Sends a call to a candidate. `isFresh`: on a new socket, even if one is open. */
  ask(candidate: AskedCandidate, request: UpstreamCall, egress: Egress, isFresh: boolean): UpstreamExchange {
    const { upstream, adapter } = candidate;
    const { path, headers, chunks, byteLength } = outgoing(candidate, request, AS_FRAME);
    if (isFresh || this.#link?.takes(upstream) !== true) {
      const shown = shownCredential(upstream, adapter);
      this.#link?.leave();
      this.#link = new Link(upstream, { path, headers: { ...this.#handshake(headers), ...shown } }, egress);
    }
    const exchange = this.#link.ask(Buffer.concat(chunks, byteLength));
    if (this.#isReleased) this.#link.leave();
    return exchange;
  }

  /** Returns whether the socket is open, goes to this upstream, and the upstream has answered on it. */
  isAt(upstream: Upstream): boolean {
    return this.#link?.hasAnswered === true && this.#link.takes(upstream);
  }

  /** Returns the credential with which the socket was opened. */
  credentialAt({ credentials }: Pick<Upstream, 'credentials'>): Credential | undefined {
    return credentials.find(({ name }) => name === this.#link?.credential.name);
  }

  /** Returns an answer that the upstream sent on the socket, if the socket is still open. */
  find(id: string): SocketAnswer | undefined {
    return this.#link?.answerOf(id);
  }

  /** Closes the socket, because the client has disconnected. An exchange that is still being read ends first. */
  release(): void {
    this.#isReleased = true;
    this.#link?.leave();
  }

  /** Returns the headers of a handshake, which has no body. The protocol version is the client's, whatever other headers the upstream gets. */
  #handshake({ 'content-type': _type, accept: _accept, ...headers }: Outgoing['headers']): Outgoing['headers'] {
    const betas = [headers['openai-beta'], this.beta].filter((each) => each !== undefined);
    return betas.length === 0 ? headers : { ...headers, 'openai-beta': betas.join(', ') };
  }
}

/** An answer that an upstream caches for its socket, even if the upstream does not store that answer permanently. */
export interface SocketAnswer {
  readonly upstream: string;
  /** The name of the credential (see `Upstream`) with which the upstream was called for this answer. */
  readonly credential: string;
  /** The reported input (with cached tokens) and output tokens; undefined if the upstream did not report them. */
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

type Handshake = Pick<Outgoing, 'path' | 'headers'>;

/** How many answers are kept for a socket. Upstreams cache fewer. The oldest is dropped first. */
const MAX_ANSWERS = 100;

class Link {
  hasAnswered = false;
  readonly #answers = new Map<string, SocketAnswer>();
  readonly #socket: WebSocket;
  #exchange: SocketExchange | undefined;
  #isLeaving = false;

  constructor(
    private readonly upstream: Upstream,
    handshake: Handshake,
    egress: Egress,
  ) {
    this.#socket = dial(upstream, handshake, egress);
    this.#socket.on('message', (data: Buffer, isBinary) => this.#exchange?.noteFrame(data, isBinary));
    this.#socket.on('unexpected-response', (_, answer) => this.#exchange?.noteRefusal(answer));
    this.#socket.on('error', (error) => this.#lost(error));
    this.#socket.on('close', (code) => this.#lost(new SocketLost(`the upstream's socket was closed (${code})`)));
  }

  /** Returns whether the socket is open and unused, and has the URL and credential with which a new socket to this upstream would be opened. */
  takes({ name, url, credential }: Upstream): boolean {
    const own = this.upstream;
    const isShown = credential.name === own.credential.name && credential.value === own.credential.value;
    const isTheSame = name === own.name && url.href === own.url.href && isShown;
    return isTheSame && this.#isOpen && (this.#exchange?.isOver ?? true);
  }

  get credential(): Credential {
    return this.upstream.credential;
  }

  answerOf(id: string): SocketAnswer | undefined {
    return this.#isOpen ? this.#answers.get(id) : undefined;
  }

  get #isOpen(): boolean {
    return !this.#isLeaving && this.#socket.readyState === WebSocket.OPEN;
  }

  ask(frame: Buffer): UpstreamExchange {
    const exchange = new SocketExchange(this.#socket, this.upstream.timeouts.idleMs, {
      whenAnswered: () => {
        this.hasAnswered = true;
      },
      whenDone: (event) => this.#remember(event),
      whenOver: () => this.#leaveIfDone(),
    });
    this.#exchange = exchange;
    if (this.#socket.readyState === WebSocket.OPEN) exchange.send(frame);
    else this.#socket.once('open', () => exchange.send(frame));
    return exchange;
  }

  /** Closes the socket once no exchange is being read. */
  leave(): void {
    this.#isLeaving = true;
    this.#leaveIfDone();
  }

  #leaveIfDone(): void {
    if (!this.#isLeaving || this.#exchange?.isOver === false) return;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(1000);
    else this.#socket.terminate();
  }

  #remember(event: Buffer): void {
    const answer = answerIn(event);
    if (answer === undefined) return;
    const { name: upstream, credential } = this.upstream;
    this.#answers.set(answer.id, { upstream, credential: credential.name, ...answer.tokens });
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MAX_ANSWERS && oldest !== undefined) this.#answers.delete(oldest);
  }

  #lost(error: Error): void {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isOver) return;
    if (exchange.isRequestSent) noteProgress(error, { sent: true, reused: this.hasAnswered });
    exchange.lost(error);
  }
}

/** Opens a WebSocket to an upstream, by the same guarded connector as every request. */
function dial(upstream: Upstream, { path, headers }: Handshake, egress: Egress): WebSocket {
  const { url } = upstream;
  const connect = egress.connector(upstream);
  const { hostname, host, protocol, port } = url;
  const createConnection = (_: unknown, done: (error: Error | null, socket?: Duplex) => void): void =>
    connect({ hostname, host, protocol, port }, (error, socket) => {
      if (error === null) return done(null, socket);
      noteProgress(error, { sent: false, reused: false });
      done(error);
    });
  const options: ClientOptions & { readonly closeTimeout: number } = {
    headers,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    closeTimeout: CLOSES_WITHIN_MS,
    // Node passes a callback to `createConnection`, which the types of `ws` do not declare.
    createConnection: createConnection as never,
  };
  return new WebSocket(urlAt(url, path), options);
}
