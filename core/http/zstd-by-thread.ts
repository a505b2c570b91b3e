import { Transform, type TransformCallback } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { fail } from '../base/errors';
import { FairQueue } from '../base/fair-queue';
import { workerEntry } from '../base/worker-entry';

/** The message that starts a job in the thread. The thread answers that it has begun, sends the decoded pieces in order, and then reports the end. */
export interface ZstdJob {
  readonly encoded: readonly Uint8Array[];
  /** The thread stops after the piece that exceeds this number of decoded bytes. */
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

/** Why the gateway refuses to decode a body with zstd. The first code is that of Node's own zstd decoder for the same refusal. */
export type ZstdRefusal = 'ZSTD_error_frameParameter_windowTooLarge' | 'TOO_MANY_BLOCKS';

/** The largest window (memory of the decoder) that a zstd frame may require, as the exponent of a power of two. 2^23 is 8 MB, the most that RFC 9659 allows. */
export const MAX_WINDOW_LOG = 23;

/** How long decoding one body may take, counted from the start of the job in the thread. Decoding 20 MB takes a tenth of this. */
const JOB_WITHIN_MS = 1_000;

/** The queue of bodies: one is decoded at a time, and accounts take turns. Limits on calls bound its length. */
const waiting = new FairQueue<() => Promise<void>>(Number.POSITIVE_INFINITY);
let isBusy = false;
/** The idle thread for the next body. After a broken body the thread ends, because the decoder does not free that body's memory. */
let idle: Worker | undefined;

/**
 * Decodes zstd in a thread on versions of Node without zstd (before 22.15), because the available decoder needs its whole input at once. It
 * collects the encoded bytes until the last one has arrived, so that slow clients do not occupy the thread.
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
    const onEnd = () => end(new Error('the zstd thread ended before the body was decoded'));

    function onMessage(message: FromZstdThread): void {
      if (message === 'whole') end();
      else if (message === 'begun') tooLong = setTimeout(giveUp, JOB_WITHIN_MS);
      // The reader of this stream counts the decoded bytes and knows that they exceed `maxBytes`. The stream therefore ends without an error.
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
