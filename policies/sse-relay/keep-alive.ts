import type { Protocol } from '../../core/catalog/protocols';

const COMMENT = Buffer.from(': keep-alive\n\n');

/** What a client gets when its upstream is silent. Clients of Messages know `ping`; parsers of event streams skip comments. */
const SIGNS: Readonly<Record<Protocol, Buffer>> = {
  messages: Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'),
  chat: COMMENT,
  responses: COMMENT,
  embeddings: COMMENT,
};

/** A stream that may have to be kept alive. */
export interface QuietStream {
  /** Since when its upstream has sent nothing, on the clock of `performance.now()`; undefined while nothing is waited for. */
  readonly silentSinceMs: number | undefined;
  /** Gives the client a sign, and counts the silence from `nowMs`. */
  giveSign(nowMs: number): void;
}

/** Looks this often in one period: a sign is late by a fifteenth of the period at most. */
const LOOKS = 15;
const LEAST_LOOK_MS = 20;

/** Gives the clients of silent streams signs of life, with one timer for all of them. */
export class KeepAlive {
  readonly #afterMs: number;
  readonly #streams = new Set<QuietStream>();
  #timer: NodeJS.Timeout | undefined;

  /** `afterMs`: how long an upstream is silent before its client gets a sign, in milliseconds. */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  watch(stream: QuietStream): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#look(), Math.max(LEAST_LOOK_MS, this.#afterMs / LOOKS)).unref();
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
    for (const stream of this.#streams) {
      const { silentSinceMs } = stream;
      if (silentSinceMs !== undefined && nowMs - silentSinceMs >= this.#afterMs) stream.giveSign(nowMs);
    }
  }
}

export function signOf(protocol: Protocol): Buffer {
  return SIGNS[protocol];
}
