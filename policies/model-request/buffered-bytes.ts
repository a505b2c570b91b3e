import { fail } from '../../core/errors';

/** Small bodies are not counted: they are the many, and the connections bound them. */
const COUNTED_FROM_BYTES = 65_536;

/** All large bodies a process holds at once: twelve of the largest allowed. */
const MAX_BUFFERED_BYTES = 268_435_456;

export interface Buffering {
  /** @throws OVERLOADED when the process holds as much as it may. */
  add(bytes: number): void;
}

/**
 * Counts what the bodies of calls keep in memory until the calls end, for a body must be there for the next candidate. A
 * client that sends many large bodies at once is told to wait instead of the process running out.
 */
export class BufferedBytes {
  #bytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes = MAX_BUFFERED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /**
   * A body that says how long it will be has its room from the beginning: of many at once the first are taken whole, in the
   * place of all being taken halfway and refused then.
   */
  of(call: { onEnd(work: () => void): void }, announcedBytes = 0): Buffering {
    let received = 0;
    let counted = 0;
    const count = (bytes: number): void => {
      if (bytes < COUNTED_FROM_BYTES || bytes <= counted) return;
      if (this.#bytes + bytes - counted > this.#maxBytes) throw fail('OVERLOADED', { retryAfterSeconds: 1 });
      if (counted === 0) {
        call.onEnd(() => {
          this.#bytes -= counted;
        });
      }
      this.#bytes += bytes - counted;
      counted = bytes;
    };
    count(announcedBytes);
    return {
      add: (bytes) => {
        received += bytes;
        count(received);
      },
    };
  }
}
