import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientSocketOf } from '../../core/wire/inner-connection';

/** The longest time between two looks at the socket. */
const LOOK_MS = 1_000;
const LOOKS_PER_STALL = 4;

/** The fields of a Node socket that show that a client takes part of a large write. */
interface StreamHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** A time in which a client took no byte of what waited for it. It reaches from one look to another, so it is never longer than the real one. */
interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Finds the stalls of a client: times of `stalledAfterMs` or longer in which it took none of the bytes that waited for it. */
export class StallWatch {
  readonly #response: ServerResponse;
  readonly #stalledAfterMs: number;
  #timer: NodeJS.Timeout | undefined;
  #taken = 0;
  /** When a look last saw the client take something. */
  #takenMs = 0;
  /** When a later look last saw it take nothing. */
  #idleMs = 0;
  /** The stalls that have ended. Each is long, so there are few. */
  #ended: Stall[] | undefined;

  constructor(response: ServerResponse, stalledAfterMs: number) {
    this.#response = response;
    this.#stalledAfterMs = stalledAfterMs;
  }

  /** Starts the watch: the client must take something before it gets more. Later calls cost nothing. */
  waits(): void {
    if (this.#timer !== undefined) return;
    this.#takenMs = this.#idleMs = performance.now();
    this.#taken = this.#bytesTaken();
    const everyMs = Math.min(LOOK_MS, this.#stalledAfterMs / LOOKS_PER_STALL);
    this.#timer = setInterval(() => this.#look(performance.now()), everyMs).unref();
  }

  /** True if the client was slower than its upstream at least once. */
  get hasWaited(): boolean {
    return this.#timer !== undefined;
  }

  /** Ends the watch. Returns the time on the clock of `performance.now()`. */
  stop(): number {
    const nowMs = performance.now();
    if (this.#timer === undefined) return nowMs;
    clearInterval(this.#timer);
    this.#look(nowMs);
    this.#noteStall();
    return nowMs;
  }

  /** True if, at some moment between these times, the client had taken no byte for `stalledAfterMs`. Valid once the watch has ended. */
  wasStalled(sinceMs: number, untilMs: number): boolean {
    const overlaps = ({ fromMs, toMs }: Stall) => fromMs + this.#stalledAfterMs <= untilMs && sinceMs <= toMs;
    return this.#ended?.some(overlaps) ?? false;
  }

  #look(nowMs: number): void {
    const taken = this.#bytesTaken();
    if (taken === this.#taken && this.#response.writableNeedDrain) {
      this.#idleMs = nowMs;
      return;
    }
    this.#noteStall();
    this.#taken = taken;
    this.#takenMs = this.#idleMs = nowMs;
  }

  #noteStall(): void {
    const stall = { fromMs: this.#takenMs, toMs: this.#idleMs };
    if (stall.toMs - stall.fromMs < this.#stalledAfterMs) return;
    this.#ended ??= [];
    this.#ended.push(stall);
  }

  /** Returns how many bytes the system has taken from this process for the client. A closed connection takes no more. */
  #bytesTaken(): number {
    const socket = clientSocketOf(this.#response);
    const { _handle: handle } = (socket ?? {}) as Partial<Socket> & { readonly _handle?: StreamHandle | null };
    return handle == null ? this.#taken : handle.bytesWritten - handle.writeQueueSize;
  }
}
