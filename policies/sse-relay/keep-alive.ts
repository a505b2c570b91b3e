import { DenseSet } from '../../core/base/dense-set';
import type { Protocol } from '../../core/catalog/protocols';

const COMMENT = Buffer.from(': keep-alive\n\n');

/** The keep-alive bytes that a client receives while its upstream is silent. Messages clients know `ping`; SSE parsers skip comments. */
const SIGNS: Readonly<Record<Protocol, Buffer>> = {
  messages: Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'),
  chat: COMMENT,
  responses: COMMENT,
  embeddings: COMMENT,
};

/** A stream that may need keep-alive bytes. */
export interface QuietStream {
  /** The index of the stream in the `DenseSet` of all streams. */
  place: number;
  /** The time at which the upstream became silent, on the clock of `performance.now()`; undefined while the relay does not wait for it. */
  readonly silentSinceMs: number | undefined;
  /** Sends keep-alive bytes to the client and counts the silence from `nowMs` on. */
  giveSign(nowMs: number): void;
}

/** How often the timer fires in one period. Keep-alive bytes are late by a fifteenth of the period at most. */
const LOOKS = 15;
const MIN_LOOK_MS = 20;

/** Sends keep-alive bytes to the clients of silent streams, with one timer for all streams. */
export class KeepAlive {
  readonly #streams = new DenseSet<QuietStream>();
  #timer: NodeJS.Timeout | undefined;

  /** `afterMs`: how long an upstream is silent before its client receives keep-alive bytes, in milliseconds. */
  constructor(private readonly afterMs: number) {}

  watch(stream: QuietStream): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#look(), Math.max(MIN_LOOK_MS, this.afterMs / LOOKS)).unref();
  }

  get hasTimer(): boolean {
    return this.#timer !== undefined;
  }

  forget(stream: QuietStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const nowMs = performance.now();
    for (const stream of this.#streams.all()) {
      const { silentSinceMs } = stream;
      if (silentSinceMs !== undefined && nowMs - silentSinceMs >= this.afterMs) stream.giveSign(nowMs);
    }
  }
}

export function signOf(protocol: Protocol): Buffer {
  return SIGNS[protocol];
}
