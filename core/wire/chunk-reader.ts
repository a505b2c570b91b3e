import type { Pauses } from './pauses';

/** Reads a body in chunks. A reader that waits for the next chunk can hand the body over to another reader. */
export interface ChunkReader {
  /** Whether a chunk, the end or a failure has arrived, so that `take` may be called. */
  readonly isReady: boolean;
  /** Resolves when `isReady` is true. It never rejects. */
  ready(): Promise<void>;
  /** Calls the listener once `isReady` is true, immediately if it already is. It makes no promise, because every unstreamed answer is read this way. */
  whenReady(listener: () => void): void;
  /**
   * Returns the next chunk; undefined at the end. Call it only when `isReady` is true.
   * @throws if the body broke off
   */
  take(): Buffer | undefined;
  /** Stops reading, and makes the sender stop. */
  cancel(): void;
  /** Measures how long the gateway paused reading; undefined if it never paused. The measurement stops at the end of the body. */
  readonly pauses?: Pauses | undefined;
}

/** A body without bytes, or one that has been read. */
export const NO_CHUNKS: ChunkReader = {
  isReady: true,
  ready: () => Promise.resolve(),
  whenReady: (listener) => listener(),
  take: () => undefined,
  cancel: () => undefined,
};

/** Yields all chunks until the end. If the caller stops early, it cancels the body, so that the sender stops. */
export async function* bytesOf(chunks: ChunkReader): AsyncGenerator<Buffer> {
  try {
    for (;;) {
      if (!chunks.isReady) await chunks.ready();
      const chunk = chunks.take();
      if (chunk === undefined) return;
      yield chunk;
    }
  } finally {
    chunks.cancel();
  }
}

/** The body has more bytes than the reader keeps. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong';
}

/**
 * Reads a whole body.
 * @throws if the body broke off; BodyTooLong if it has more than `atMost` bytes
 */
export function readAll(chunks: ChunkReader, atMost: number): Promise<Buffer> {
  const read: Buffer[] = [];
  return new Promise((resolve, reject) =>
    readEach(
      chunks,
      atMost,
      (chunk) => void read.push(chunk),
      () => resolve(inOne(read)),
      reject,
    ),
  );
}

/**
 * Reads a body to its end without promises, because every unstreamed call is read here.
 * @param take receives each chunk as it arrives, and the number of bytes so far; no more is read until its promise resolves
 * @param failed gets why the body broke off, what `take` threw, or BodyTooLong
 */
export function readEach(
  chunks: ChunkReader,
  atMost: number,
  take: (chunk: Buffer, byteLength: number) => Promise<void> | undefined | void,
  ended: () => void,
  failed: (error: unknown) => void,
): void {
  let byteLength = 0;
  const read = (): void => {
    try {
      while (chunks.isReady) {
        const chunk = chunks.take();
        if (chunk === undefined) return void ended();
        byteLength += chunk.length;
        if (byteLength > atMost) {
          chunks.cancel();
          throw new BodyTooLong(`the answer has more than ${atMost} bytes`);
        }
        const taking = take(chunk, byteLength);
        if (taking !== undefined) return void taking.then(read, failed);
      }
    } catch (error) {
      return void failed(error);
    }
    chunks.whenReady(read);
  };
  read();
}

/**
 * Calls `work` when the body has data, once for each read of the connection and without a promise for each. Resolves with the first result
 * of `work`. Calls `wait` before each wait.
 */
export function eachRead<T>(chunks: ChunkReader, work: () => T | Promise<T> | undefined, wait: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const read = (): void => {
      try {
        while (chunks.isReady) {
          const result = work();
          if (result !== undefined) return void resolve(result);
        }
        wait();
        chunks.whenReady(wake);
      } catch (error) {
        reject(error);
      }
    };
    // Reading continues in the next tick, because one read of the connection may deliver several chunks.
    const wake = (): void => process.nextTick(read);
    read();
  });
}

/** Returns the pieces as one buffer. Pieces that are adjacent in memory need no copy. */
export function inOne(pieces: readonly Buffer[]): Buffer {
  const [first] = pieces;
  if (first === undefined) return Buffer.alloc(0);
  let end = first.byteOffset;
  for (const { buffer, byteOffset, byteLength } of pieces) {
    if (buffer !== first.buffer || byteOffset !== end) return Buffer.concat(pieces);
    end += byteLength;
  }
  return pieces.length === 1 ? first : Buffer.from(first.buffer, first.byteOffset, end - first.byteOffset);
}

/** Returns the error that `take` throws if no chunk is ready. It must not look like the end of a body. */
export function notReady(): Error {
  return new Error('take() was called before a chunk was ready');
}

/** Reads the decompressed chunks of a body. */
export class IteratedChunks implements ChunkReader {
  #coming: Promise<void> | undefined;
  #next: IteratorResult<Buffer> | { readonly failure: unknown } | undefined;

  /** `source`: the body that is decoded. */
  constructor(
    private readonly iterator: AsyncIterator<Buffer>,
    private readonly source: Pick<ChunkReader, 'cancel' | 'pauses'>,
  ) {}

  get pauses(): Pauses | undefined {
    return this.source.pauses;
  }

  get isReady(): boolean {
    return this.#next !== undefined;
  }

  ready(): Promise<void> {
    if (this.#next !== undefined) return Promise.resolve();
    this.#coming ??= this.#read();
    return this.#coming;
  }

  whenReady(listener: () => void): void {
    void this.ready().then(listener);
  }

  async #read(): Promise<void> {
    this.#next = await this.iterator.next().catch((failure: unknown) => ({ failure }));
    this.#coming = undefined;
  }

  take(): Buffer | undefined {
    const next = this.#next;
    if (next === undefined) throw notReady();
    if ('failure' in next) throw next.failure;
    if (next.done === true) return undefined;
    this.#next = undefined;
    return next.value;
  }

  cancel(): void {
    this.source.cancel();
  }
}
