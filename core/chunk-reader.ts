import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/** Reads a body chunk by chunk, one reader after the other: who looks ahead can leave the chunk for the next. */
export class ChunkReader {
  readonly #body: Readable;
  readonly #iterator: AsyncIterator<Buffer>;
  #ahead: Promise<IteratorResult<Buffer>> | undefined;

  /** @param encoding the answer's content-encoding; a compressed body is read decoded */
  constructor(body: Readable, encoding: string | string[] | undefined) {
    this.#body = decoded(body, encoding);
    this.#iterator = this.#body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  /** The next chunk; it stays next until it is taken. */
  peek(): Promise<IteratorResult<Buffer>> {
    this.#ahead ??= this.#iterator.next();
    return this.#ahead;
  }

  take(): Promise<IteratorResult<Buffer>> {
    const next = this.peek();
    this.#ahead = undefined;
    return next;
  }

  /** Reads no further: the upstream is told to stop. */
  cancel(): void {
    this.#ahead?.catch(() => undefined);
    this.#body.on('error', () => undefined);
    this.#body.destroy();
  }
}

function decoded(body: Readable, encoding: string | string[] | undefined): Readable {
  const decoder = decoderOf(String(encoding ?? 'identity').toLowerCase());
  // The callback's error is the decoder's own too, and is seen by whoever reads it.
  return decoder === undefined ? body : pipeline(body, decoder, () => undefined);
}

function decoderOf(encoding: string) {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      return undefined;
  }
}
