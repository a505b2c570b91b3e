import type { Socket } from 'node:net';
import WebSocket from 'ws';
import { toGatewayError } from '../api/to-gateway-error';
import { fail, GatewayError } from '../base/errors';
import { log } from '../base/log';
import { safeErrorFields } from '../base/safe-error';
import { AnswerRoom, type BodyOwner, BUFFERED, SMALL_BODY_BYTES } from '../http/buffered-bytes';
import { newRequestId } from '../http/http';
import { type FrameWriter, ownErrorEvent } from './answer-frames';
import type { Deliveries, Delivery } from './delivery';
import { meanwhile, type ReadFrame, readFrame } from './frame';
import type { InnerClient } from './inner-client';

/** The client that sends the frames, and the answers to frames of its session. */
export interface SocketClient {
  readonly accountId: string;
  /** The client's session. Two frames count as repetitions only within one session. */
  readonly session: string;
  /** Whether the client may open further WebSockets for the same session. */
  readonly mayReturn: boolean;
  readonly deliveries: Deliveries;
}

export interface SocketTimes {
  /** How long a socket stays open without a frame and without a response under way. */
  readonly idleMs: number;
  readonly lifeMs: number;
  /** How long bytes may wait without the client reading any, before the gateway disconnects it. */
  readonly stalledMs: number;
}

/** How many bytes may wait for a client. Above that, the gateway neither sends to it nor reads from it. */
const MAX_WAITING_BYTES = 64 * 1024;
/** The bytes of a ping besides its data: a short head and a mask. */
const PING_HEAD_BYTES = 6;

/** Close codes of RFC 6455: the server goes away; the server is overloaded. */
const GOING_AWAY = 1001;
const TRY_AGAIN_LATER = 1013;

/** A client's WebSocket. Each `response.create` is one call, and calls run one at a time. */
export class ClientSocket {
  /** Whether the client still waits for the last event of a response. */
  #isBusy = false;
  /** How many calls have not ended: the current one, and a previous one whose last event was already sent. */
  #running = 0;
  #turn = Promise.resolve();
  /** The frame that is being answered, or was answered last. */
  #current: { readonly byteLength: number; readonly reading: Promise<ReadFrame> } | undefined;
  /** The answer to the frame in `#current`, and the writer that sends this answer to the client. */
  #answering: { readonly delivery: Delivery; readonly writer: FrameWriter } | undefined;
  /** Handles the frames that arrive during a response, one after the other. */
  #asides = Promise.resolve();
  /** How many reasons pause the reading from this client; 0: the gateway reads. */
  #pauses = 0;
  #mustLeave: string | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #life: NodeJS.Timeout;
  readonly #incoming: IncomingBytes;
  readonly #room: AnswerRoom;

  constructor(
    private readonly socket: WebSocket,
    carrier: Socket,
    private readonly calls: InnerClient,
    private readonly times: SocketTimes,
    private readonly client: SocketClient,
  ) {
    this.#incoming = new IncomingBytes(client.accountId);
    this.#room = new AnswerRoom(client.accountId);
    this.#life = setTimeout(() => this.leave('the WebSocket reached its maximum lifetime'), times.lifeMs);
    this.#watchIdle();
    socket.on('message', (data: Buffer, isBinary) => this.#frame(data, isBinary));
    socket.on('ping', ({ length }) => this.#incoming.add(-length - PING_HEAD_BYTES));
    // The event `error` is ignored, because a frame that violates the protocol closes the socket, and the event `close` reports it.
    socket.on('error', () => undefined);
    socket.once('close', () => this.#closed());
    carrier.on('data', ({ length }: Buffer) => this.#arrived(length));
    carrier.setTimeout(times.stalledMs);
    carrier.on('timeout', () => {
      if (carrier.writableLength > 0) socket.terminate();
    });
  }

  /** Closes the socket after the last event of the response under way. */
  leave(why: string): void {
    this.#mustLeave ??= why;
    if (this.#running === 0) this.socket.close(GOING_AWAY, this.#mustLeave);
  }

  #frame(data: Buffer, isBinary: boolean): void {
    this.#incoming.clear();
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (isBinary) this.#refuse(fail('INVALID_FIELD', { message: 'The frame must be a text frame.' }));
    else if (this.#isBusy) {
      this.#pause();
      this.#asides = this.#asides.then(() => this.#meanwhile(data));
    } else this.#begin(data);
  }

  /** Handles a frame that arrives during a response. A repetition of the current frame gets the current answer; any other frame gets an error. */
  async #meanwhile(frame: Buffer): Promise<void> {
    const refusal = meanwhile(frame);
    const isRepeated = refusal.code === 'CONFLICT' && (await this.#repeats(frame).catch(() => false));
    this.#resume();
    if (!isRepeated) this.#refuse(refusal);
  }

  async #repeats(frame: Buffer): Promise<boolean> {
    if (this.#current === undefined) return false;
    const { byteLength, reading } = this.#current;
    const { identity } = await reading;
    if (identity.eventId === undefined && byteLength !== frame.length) return false;
    const { eventId, hash } = (await readFrame(frame)).identity;
    return hash === identity.hash || (eventId !== undefined && eventId === identity.eventId);
  }

  /** Begins a call after the previous one has ended, which may be later than the previous call's last event. */
  #begin(frame: Buffer): void {
    this.#isBusy = true;
    this.#running += 1;
    clearTimeout(this.#idle);
    const reading = readFrame(frame);
    reading.catch(() => undefined);
    this.#current = { byteLength: frame.length, reading };
    this.#turn = this.#turn.then(() => this.#answer(reading));
  }

  async #answer(reading: Promise<ReadFrame>): Promise<void> {
    let isOver = false;
    const over = (): void => {
      if (!isOver) this.#isBusy = false;
      isOver = true;
    };
    const writer: FrameWriter = {
      give: (text, isLast) => {
        if (isLast) over();
        return this.#give(text);
      },
      giveSign: () => this.#giveSign(),
    };
    try {
      await this.#call(await reading, writer);
    } catch (error) {
      over();
      this.#refuse(asRefusal(error));
    }
    over();
    this.#running -= 1;
    if (this.#running > 0) return;
    if (this.#mustLeave === undefined) this.#watchIdle();
    else this.leave(this.#mustLeave);
  }

  async #call({ body, identity }: ReadFrame, writer: FrameWriter): Promise<void> {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    const { deliveries, session } = this.client;
    const delivery =
      deliveries.find(session, identity) ?? deliveries.begin(session, identity, this.calls.post(body), this.client);
    this.#answering = { delivery, writer };
    await delivery.giveTo(writer).catch((cause: unknown) => {
      if (cause instanceof GatewayError) throw cause;
      throw fail('ALL_PROVIDERS_FAILED', { message: 'The answer was interrupted.', cause });
    });
  }

  /** Sends a frame. Disconnects the client if its account has no memory left for a large frame. */
  #give(text: string): Promise<void> | undefined {
    return text.length > SMALL_BODY_BYTES ? this.#giveLarge(text) : this.#send(text);
  }

  async #giveLarge(text: string): Promise<void> {
    if (!(await this.#room.arrive(text.length))) return this.socket.terminate();
    this.#room.wait();
    await this.#send(text);
    this.#room.giveBack();
  }

  #send(text: string): Promise<void> | undefined {
    if (this.socket.readyState !== WebSocket.OPEN) {
      this.#leaveAnswer();
      return undefined;
    }
    let hasRoom = (): void => undefined;
    this.socket.send(text, () => hasRoom());
    if (this.socket.bufferedAmount < MAX_WAITING_BYTES) return undefined;
    return new Promise((resolve) => {
      hasRoom = resolve;
    });
  }

  #giveSign(): void {
    const { readyState, bufferedAmount } = this.socket;
    if (readyState === WebSocket.OPEN && bufferedAmount < MAX_WAITING_BYTES) this.socket.ping();
  }

  /** Sends an error. If the client is slow, pauses reading from it until it has received the error. */
  #refuse(error: GatewayError): void {
    const room = this.#give(ownErrorEvent(error, newRequestId()));
    if (room === undefined) return;
    this.#pause();
    void room.then(() => this.#resume());
  }

  #pause(): void {
    this.#pauses += 1;
    this.socket.pause();
  }

  #resume(): void {
    this.#pauses -= 1;
    if (this.#pauses === 0) this.socket.resume();
  }

  /** Cancels the call of a client that disconnects, unless another delivery of the same frame is being answered or may follow. */
  #leaveAnswer(): void {
    this.#answering?.delivery.leave(this.#answering.writer);
  }

  #arrived(bytes: number): void {
    try {
      this.#incoming.add(bytes);
    } catch (error) {
      this.#refuse(toGatewayError(error));
      this.socket.close(TRY_AGAIN_LATER);
      // Discards the frames that have arrived, and stops reading from the client.
      this.#pause();
      this.#incoming.clear();
    }
  }

  #watchIdle(): void {
    clearTimeout(this.#idle);
    if (this.socket.readyState === WebSocket.OPEN) this.#idle = setTimeout(() => this.leave('idle'), this.times.idleMs);
  }

  #closed(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#life);
    this.#incoming.clear();
    this.#room.close();
    this.#leaveAnswer();
    const close = () => this.calls.close();
    void (this.#answering?.delivery.ended ?? Promise.resolve()).then(close, close);
  }
}

function asRefusal(error: unknown): GatewayError {
  const shown = toGatewayError(error);
  if (shown.code === 'INTERNAL_ERROR')
    log.error(
      { error: safeErrorFields(error) },
      'a frame of a WebSocket could not be answered because of an internal error',
    );
  return shown;
}

/** Counts the bytes of an incomplete frame towards the memory limits of the process. */
class IncomingBytes {
  readonly #owner: BodyOwner;
  #endings: (() => void)[] = [];
  #room: ReturnType<typeof BUFFERED.open>;
  #bytes = 0;
  #counted = 0;

  constructor(accountId: string) {
    this.#owner = { accountId, onEnd: (work) => this.#endings.push(work) };
    this.#room = BUFFERED.open(this.#owner);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= this.#counted) return;
    const more = this.#bytes - this.#counted;
    this.#counted = this.#bytes;
    this.#room.add(more);
  }

  clear(): void {
    for (const work of this.#endings) work();
    this.#endings = [];
    this.#room = BUFFERED.open(this.#owner);
    this.#bytes = 0;
    this.#counted = 0;
  }
}
