import { fail } from '../base/errors';
import { type BodyRoom, BUFFERED } from '../http/buffered-bytes';
import type { UpstreamExchange } from '../wire/upstream-exchange';
import { type FrameWriter, giveAnswer } from './answer-frames';
import type { FrameIdentity } from './frame';

/** How long after an answer an equal frame still counts as a repetition. A disconnected client has the same time to repeat its frame. */
const REPEATED_WITHIN_MS = 5_000;

/** The maximum bytes of an answer that are kept for repetitions. A client that repeats a frame has usually read little of the answer. */
const MAX_KEPT_BYTES = 1_048_576;
/** The maximum bytes that one character of a string occupies in memory. */
const BYTES_PER_CHARACTER = 2;

/** The last events of answers that are charged. After any other last event, a repetition of the client's frame begins a new call. */
const CHARGED: ReadonlySet<string | undefined> = new Set(['response.completed', 'response.incomplete']);

/** The running answers and those that ended recently, by the session of the client and the identity of the frame. */
export class Deliveries {
  readonly #known = new Map<string, Delivery>();

  /** Returns the answer to an earlier delivery of a frame; undefined if this is the first. */
  find(session: string, { eventId, hash }: FrameIdentity): Delivery | undefined {
    const byId = eventId === undefined ? undefined : this.#known.get(`${session}\nid ${eventId}`);
    return byId ?? this.#known.get(`${session}\n${hash}`);
  }

  /** Begins to read the answer to a frame. */
  begin(session: string, { eventId, hash }: FrameIdentity, exchange: UpstreamExchange, owner: Owner): Delivery {
    const names = [`${session}\n${hash}`, ...(eventId === undefined ? [] : [`${session}\nid ${eventId}`])];
    const delivery = new Delivery(exchange, owner, () => {
      for (const name of names) if (this.#known.get(name) === delivery) this.#known.delete(name);
    });
    for (const name of names) this.#known.set(name, delivery);
    return delivery;
  }
}

interface Owner {
  readonly accountId: string;
  /** Whether the client can repeat the frame on another WebSocket. */
  readonly mayReturn: boolean;
}

interface Frame {
  readonly text: string;
  readonly isLast: boolean;
}

/** The answer to one frame, for every WebSocket that delivers the frame. The gateway requests and charges the answer once. */
export class Delivery {
  /** Resolves when the answer is whole. Rejects if it breaks off. */
  readonly ended: Promise<void>;
  readonly #exchange: UpstreamExchange;
  readonly #owner: Owner;
  readonly #forget: () => void;
  /** The readers of the answer, and whether each has received all frames so far. */
  readonly #readers = new Map<FrameWriter, boolean>();
  /** The frames of the answer so far; undefined once they exceed the memory limit for repetitions. */
  #frames: Frame[] | undefined = [];
  #keptBytes = 0;
  readonly #room: BodyRoom;
  readonly #endings: (() => void)[] = [];
  #hasBegun = false;
  #isOver = false;
  #waiting: NodeJS.Timeout | undefined;

  constructor(exchange: UpstreamExchange, owner: Owner, forget: () => void) {
    this.#exchange = exchange;
    this.#owner = owner;
    this.#forget = forget;
    this.#room = BUFFERED.open({ accountId: owner.accountId, onEnd: (work) => this.#endings.push(work) });
    const frames: FrameWriter = {
      give: (text, isLast) => this.#give({ text, isLast }),
      giveSign: () => {
        for (const reader of this.#readers.keys()) reader.giveSign();
      },
    };
    this.ended = giveAnswer(exchange, frames).then(
      (last) => this.#end(CHARGED.has(last)),
      (error: unknown) => {
        this.#end(false);
        throw error;
      },
    );
    this.ended.catch(() => undefined);
  }

  /**
   * Replays the answer to a reader from its first frame. Resolves after the last one. @throws CONFLICT if the first frames were
   * discarded
   */
  async giveTo(reader: FrameWriter): Promise<void> {
    clearTimeout(this.#waiting);
    const frames = this.#frames;
    if (frames === undefined) throw this.#tooLate();
    this.#readers.set(reader, false);
    for (let at = 0; at < frames.length; at += 1) {
      const { text, isLast } = frames[at] as Frame;
      this.#hasBegun = true;
      await reader.give(text, isLast);
    }
    if (this.#frames === undefined && !this.#isOver) throw this.#tooLate();
    // The client of this reader may have disconnected while it received the earlier frames.
    if (this.#readers.has(reader)) this.#readers.set(reader, true);
    await this.ended;
  }

  /**
   * Removes a reader whose client disconnected. If it was the last reader, cancels the answer: after 5 s if no frame was sent and the
   * client may reconnect, else at once.
   */
  leave(reader: FrameWriter): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0 || this.#isOver) return;
    if (this.#hasBegun || !this.#owner.mayReturn) this.#exchange.cancel();
    else this.#waiting = setTimeout(() => this.#exchange.cancel(), REPEATED_WITHIN_MS);
  }

  #give(frame: Frame): Promise<void> | undefined {
    this.#keep(frame);
    const waits: Promise<void>[] = [];
    for (const [reader, isUpToDate] of this.#readers) {
      if (!isUpToDate) continue;
      this.#hasBegun = true;
      const wait = reader.give(frame.text, frame.isLast);
      if (wait !== undefined) waits.push(wait);
    }
    return waits.length > 1 ? Promise.all(waits).then(() => undefined) : waits[0];
  }

  #keep(frame: Frame): void {
    if (this.#frames === undefined) return;
    const bytes = BYTES_PER_CHARACTER * frame.text.length;
    this.#keptBytes += bytes;
    if (this.#keptBytes <= MAX_KEPT_BYTES && this.#hasRoom(bytes)) this.#frames.push(frame);
    else this.#drop();
  }

  #hasRoom(bytes: number): boolean {
    try {
      this.#room.add(bytes);
      return true;
    } catch {
      return false;
    }
  }

  #drop(): void {
    this.#frames = undefined;
    for (const work of this.#endings.splice(0)) work();
  }

  #end(isCharged: boolean): void {
    this.#isOver = true;
    clearTimeout(this.#waiting);
    const forget = () => {
      this.#forget();
      this.#drop();
    };
    if (isCharged) setTimeout(forget, REPEATED_WITHIN_MS).unref();
    else forget();
  }

  #tooLate() {
    const message =
      'The same frame is being answered, or was less than 5 s ago, with an answer too long to be repeated.';
    return fail('CONFLICT', { message, retryable: false });
  }
}
