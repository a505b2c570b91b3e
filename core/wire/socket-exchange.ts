import type { IncomingMessage } from 'node:http';
import type WebSocket from 'ws';
import { LAST_EVENTS, type Refusal, refusalIn, toEvent, typeOf } from './socket-frames';
import { UpstreamExchange } from './upstream-exchange';

/** What the owner of a socket learns of an exchange on it. */
export interface ExchangeEvents {
  readonly whenAnswered: () => void;
  readonly whenDone: (event: Buffer) => void;
  readonly whenOver: () => void;
}

/** Sends one `response.create` and reads its events as the answer that a POST would have got. */
export class SocketExchange extends UpstreamExchange {
  isRequestSent = false;
  readonly #socket: WebSocket;
  readonly #idleMs: number;
  readonly #events: ExchangeEvents;
  /** The HTTP answer that rejected the socket. */
  #refusal: IncomingMessage | undefined;
  #idle: NodeJS.Timeout | undefined;
  #hasHead = false;

  constructor(socket: WebSocket, idleMs: number, events: ExchangeEvents) {
    super();
    this.#socket = socket;
    this.#idleMs = idleMs;
    this.#events = events;
  }

  send(frame: Buffer): void {
    if (this.isOver) return;
    // The socket itself reports a frame that it cannot send.
    this.#socket.send(frame, { binary: false }, () => undefined);
    this.isRequestSent = true;
  }

  noteFrame(data: Buffer, isBinary: boolean): void {
    if (this.isOver) return;
    if (isBinary) return void this.#breakOff(new SocketLost('the upstream sent a binary frame'));
    const type = typeOf(data);
    const refusal = this.#hasHead || type !== 'error' ? undefined : refusalIn(data);
    if (refusal !== undefined) return void this.#answerWith(refusal);
    if (!this.#hasHead) this.#beginStream();
    this.#watchIdle();
    this.arrived(toEvent(type, data));
    if (type === 'response.completed' || type === 'response.incomplete') this.#events.whenDone(data);
    if (type !== undefined && LAST_EVENTS.has(type)) this.end();
  }

  /** The upstream answers the handshake over HTTP. A status of success is a failure too, because no socket was opened. */
  noteRefusal(answer: IncomingMessage): void {
    const { statusCode: status = 0, headers } = answer;
    if (status < 300) return void this.#breakOff(new SocketLost('the upstream answered without a WebSocket'));
    this.#refusal = answer;
    this.gotHead({ status, headers });
    answer.on('data', (chunk: Buffer) => this.arrived(chunk));
    answer.once('end', () => this.end());
    answer.once('close', () => this.lost(new SocketLost('the upstream closed the connection while it sent its error')));
  }

  /** The socket is closed, or reports why it will be. */
  lost(error: Error): void {
    if (!this.isOver) this.fail(error);
  }

  protected override end(): void {
    super.end();
    this.#stop();
  }

  protected override fail(error: Error): void {
    super.fail(error);
    this.#stop();
  }

  protected pauseSender(): void {
    (this.#refusal ?? this.#socket).pause();
  }

  protected resumeSender(): void {
    (this.#refusal ?? this.#socket).resume();
  }

  /** The protocol has no other way to make an upstream stop. */
  protected abortSender(): void {
    this.#socket.terminate();
  }

  #stop(): void {
    clearTimeout(this.#idle);
    this.#events.whenOver();
  }

  #beginStream(): void {
    this.#hasHead = true;
    this.#events.whenAnswered();
    this.gotHead({ status: 200, headers: { 'content-type': 'text/event-stream' } });
  }

  #answerWith({ status, headers, body }: Refusal): void {
    this.gotHead({ status, headers });
    this.arrived(body);
    this.end();
  }

  #breakOff(error: Error): void {
    this.#socket.terminate();
    this.lost(error);
  }

  #watchIdle(): void {
    if (this.#idle !== undefined) return void this.#idle.refresh();
    this.#idle = setTimeout(() => {
      // The client is slow, and not the upstream.
      if (this.isPaused) this.#idle?.refresh();
      else this.#breakOff(new SilentUpstream());
    }, this.#idleMs);
  }
}

export class SocketLost extends Error {
  override readonly name = 'SocketLost';
}

class SilentUpstream extends Error {
  override readonly name = 'TimeoutError';
  override readonly message = 'the upstream sent no frame within the timeout';
}
