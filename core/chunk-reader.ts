import type { Readable } from 'node:stream';

/** Reads a body piece by piece, one reader after the other: who waits for the next piece can leave it for somebody else. */
export interface ChunkReader {
  /** Resolves when there is a piece, the end or a failure, which `take` then gives at once. Never rejects. */
  ready(): Promise<void>;
  /** The next piece; undefined at the end. Rejects when the body broke off. */
  take(): Promise<Buffer | undefined>;
  /** Reads no further: whoever sends is told to stop. */
  cancel(): void;
}

/** The pieces to the end; who stops early tells the sender to stop. */
export async function* bytesOf(chunks: ChunkReader): AsyncGenerator<Buffer> {
  try {
    for (let chunk = await chunks.take(); chunk !== undefined; chunk = await chunks.take()) yield chunk;
  } finally {
    chunks.cancel();
  }
}

/** Reads what comes out of a Node stream, such as a decoder. */
export class StreamChunks implements ChunkReader {
  readonly #stream: Readable;
  readonly #iterator: AsyncIterator<Buffer>;
  #next: Promise<IteratorResult<Buffer>> | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
    // It may fail before anybody reads; `take` gives the failure then.
    stream.on('error', () => undefined);
    this.#iterator = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  async ready(): Promise<void> {
    this.#next ??= this.#iterator.next();
    await this.#next.catch(() => undefined);
  }

  async take(): Promise<Buffer | undefined> {
    const next = this.#next ?? this.#iterator.next();
    this.#next = undefined;
    const { done, value } = await next;
    return done === true ? undefined : value;
  }

  cancel(): void {
    this.#next?.catch(() => undefined);
    this.#stream.destroy();
  }
}
