import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const LOOK_MS = 1_000;

/** What Node's own timeout of sockets looks at to see that a client takes something of a large write. */
interface StreamHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** A time in which a client took no byte of what waited for it. */
interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Knows when a client took no byte of what waits for it for `stalledAfterMs` or longer. */
export class StallWatch {
  readonly #response: ServerResponse;
  readonly #stalledAfterMs: number;
  #timer: NodeJS.Timeout | undefined;
  #takenMs = 0;
  #taken = 0;
  /** Those that have ended. Each is long, so there are few. */
  #ended: Stall[] | undefined;

  constructor(response: ServerResponse, stalledAfterMs: number) {
    this.#response = response;
    this.#stalledAfterMs = stalledAfterMs;
  }

  /** The client has to take something before it is given more. Costs nothing after the first time. */
  waits(): void {
    if (this.#timer !== undefined) return;
    this.#takenMs = performance.now();
    this.#taken = this.#bytesTaken();
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** The client was slower than its upstream at least once. */
  get hasWaited(): boolean {
    return this.#timer !== undefined;
  }

  /** Ends the watch. Returns when, on the clock of `performance.now()`. */
  stop(): number {
    const nowMs = performance.now();
    if (this.#timer === undefined) return nowMs;
    clearInterval(this.#timer);
    this.#look();
    this.#noteStall(nowMs);
    return nowMs;
  }

  /** True where the client had taken no byte for `stalledAfterMs` at some moment between these times. For a watch that has ended. */
  wasStalled(sinceMs: number, untilMs: number): boolean {
    const overlaps = ({ fromMs, toMs }: Stall) => fromMs + this.#stalledAfterMs <= untilMs && sinceMs <= toMs;
    return this.#ended?.some(overlaps) ?? false;
  }

  #look(): void {
    const taken = this.#bytesTaken();
    if (taken === this.#taken && this.#response.writableNeedDrain) return;
    this.#taken = taken;
    const nowMs = performance.now();
    this.#noteStall(nowMs);
    this.#takenMs = nowMs;
  }

  #noteStall(nowMs: number): void {
    if (nowMs - this.#takenMs < this.#stalledAfterMs) return;
    this.#ended ??= [];
    this.#ended.push({ fromMs: this.#takenMs, toMs: nowMs });
  }

  /** Bytes that the system has taken from this process for the client. */
  #bytesTaken(): number {
    const { socket } = this.#response;
    const { _handle: handle } = (socket ?? {}) as Partial<Socket> & { readonly _handle?: StreamHandle | null };
    return handle == null ? 0 : handle.bytesWritten - handle.writeQueueSize;
  }
}
