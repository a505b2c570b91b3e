import { Transform, type TransformCallback } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { fail } from '../base/errors';
import { FairQueue } from '../base/fair-queue';
import { workerEntry } from '../base/worker-entry';

/** The messages to the thread and its answers: that it begins, decoded pieces in order, then the end. */
export interface ZstdJob {
  readonly encoded: readonly Uint8Array[];
  /** The thread stops after the piece that exceeds this many decoded bytes. */
  readonly maxBytes: number;
  readonly maxWindowBytes: number;
}
export type FromZstdThread =
  | 'begun'
  | { readonly piece: Uint8Array }
  | 'whole'
  | 'too large'
  | { readonly refused: ZstdRefusal }
  | { readonly broken: string };

/** Why a body is not decoded. Node's own decoder has the first code, too. */
export type ZstdRefusal = 'ZSTD_error_frameParameter_windowTooLarge' | 'TOO_MANY_BLOCKS';

/** The memory that a frame may ask for, as a power of two: 8 MB, the most that RFC 9659 allows. */
export const MAX_WINDOW_LOG = 23;

/** How long one body may take from the time that the thread has started. Decoding 20 MB takes a tenth of this. */
const JOB_WITHIN_MS = 1_000;

/** One body is decoded at a time. The others wait, and accounts take turns. The limits of calls bound how many wait. */
const waiting = new FairQueue<() => Promise<void>>(Number.POSITIVE_INFINITY);
let isBusy = false;
/** Reused for the next body unless the last one was broken, because the decoder does not free the memory of a broken body. */
let idle: Worker | undefined;

/**
 * Decodes zstd in a thread on versions of Node that have no zstd (before 22.15), because the decoder needs its whole input at
 * once. It collects the encoded bytes until the last one has arrived, so that slow clients do not occupy the thread.
 */
export class ZstdByThread extends Transform {
  bytesWritten = 0;
  readonly #encoded: Buffer[] = [];
  readonly #maxBytes: (encodedBytes: number) => number;
  readonly #accountId: string;

  constructor(accountId: string, maxBytes: (encodedBytes: number) => number) {
    super({ readableHighWaterMark: 131_072 });
    this.#accountId = accountId;
    this.#maxBytes = maxBytes;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.bytesWritten += chunk.length;
    this.#encoded.push(chunk);
    done();
  }

  override _flush(done: TransformCallback): void {
    const encoded = this.#encoded.splice(0);
    const maxBytes = this.#maxBytes(this.bytesWritten);
    waiting.push(this.#accountId, () =>
      this.destroyed
        ? Promise.resolve()
        : decode({ encoded, maxBytes, maxWindowBytes: 2 ** MAX_WINDOW_LOG }, (piece) => this.push(piece)).then(
            () => done(),
            done,
          ),
    );
    if (!isBusy) void workOff();
  }
}

async function workOff(): Promise<void> {
  isBusy = true;
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await job();
  isBusy = false;
}

function decode(job: ZstdJob, take: (piece: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = idle ?? startWorker();
    idle = undefined;
    worker.ref();
    let tooLong: NodeJS.Timeout | undefined;
    const onEnd = () => end(new Error('the thread ended'));

    function onMessage(message: FromZstdThread): void {
      if (message === 'whole') end();
      else if (message === 'begun') tooLong = setTimeout(giveUp, JOB_WITHIN_MS);
      // The reader counts the bytes itself, and has already received a piece too many.
      else if (message === 'too large') end(undefined, false);
      else if ('broken' in message) end(new Error(message.broken));
      else if ('refused' in message) end(Object.assign(new Error('refused'), { code: message.refused }), true);
      else take(Buffer.from(message.piece.buffer, message.piece.byteOffset, message.piece.byteLength));
    }

    function giveUp(): void {
      end(fail('OVERLOADED', { retryAfterSeconds: 1 }));
    }

    function end(error?: Error, isClean = error === undefined): void {
      clearTimeout(tooLong);
      worker.off('message', onMessage).off('error', end).off('exit', onEnd);
      worker
        .on('error', () => undefined)
        .once('exit', () => {
          if (idle === worker) idle = undefined;
        });
      worker.unref();
      if (isClean) idle = worker;
      else void worker.terminate();
      if (error === undefined) resolve();
      else reject(error);
    }

    worker.removeAllListeners().on('message', onMessage).on('error', end).on('exit', onEnd);
    worker.postMessage(job);
  });
}

function startWorker(): Worker {
  const { file, execArgv } = workerEntry(require.resolve('./zstd-worker'));
  return new Worker(file, { execArgv, name: 'zstd' });
}
