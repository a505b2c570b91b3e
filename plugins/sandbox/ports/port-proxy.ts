import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { PortAddress } from '../../../core/supplier';
import { describeFault } from '../../../core/thrown';
import { type Timed, touchSandbox } from '../store';
import { noAnswer, relayAnswer, switchingHead } from './instance-answer';
import { requestOfInstance } from './instance-request';
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

/** How long a passage may outlive its token, or its sandbox, that ended elsewhere. */
const LOOK_EVERY_MS = 5_000;

/** Passes HTTP and WebSocket on to ports of instances. Either side that ends, ends the other. */
export class PortProxy {
  readonly #open = new Set<Open>();

  constructor(
    private readonly timed: Timed,
    private readonly log: Logger,
    private readonly isDraining: () => boolean,
  ) {}

  /** @throws SUPPLIER_ERROR when nothing answers as HTTP. */
  async pass(request: IncomingMessage, response: ServerResponse, passage: Passage): Promise<void> {
    const forget = this.#remember(passage, () => response.destroy());
    response.once('close', forget);
    const outgoing = requestOfInstance(request, passage.address, passage.path);
    response.once('close', () => outgoing.destroy());
    request.pipe(outgoing);
    // A client that still sends when the instance has ended is read, so that its connection can be used again.
    outgoing.once('close', () => request.resume());
    relayAnswer(await answerOf(outgoing), response, passage.headers);
  }

  /** The same for a connection that becomes another protocol's; the response is for an answer that refuses that. */
  async passUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    passage: Passage,
    response: ServerResponse,
  ): Promise<void> {
    const forget = this.#remember(passage, () => socket.destroy());
    socket.once('close', forget);
    const outgoing = requestOfInstance(request, passage.address, passage.path);
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
