import { Transform, type TransformCallback } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { ownProgram } from '../own-program';

/** The messages to the thread and its answers: decoded pieces in order, then the end. */
export interface ZstdJob {
  readonly encoded: readonly Uint8Array[];
  /** The thread stops after the piece that exceeds this many decoded bytes. */
  readonly mostBytes: number;
}
export type FromZstdThread = { readonly piece: Uint8Array } | 'whole' | 'too large' | { readonly broken: string };

/** Decoding 20 MB takes a tenth of this. */
const JOB_WITHIN_MS = 5_000;

/** One body is decoded at a time, and the others wait. Each takes at most a tenth of a second. */
let turn: Promise<unknown> = Promise.resolve();
/** Reused for the next body unless the last one was broken, because the decoder does not free the memory of a broken body. */
let idle: Worker | undefined;

/**
 * Decodes zstd in a thread on versions of Node that have no zstd (before 22.15), because the decoder needs its whole input at
 * once. It collects the encoded bytes until the last one has arrived, so that slow clients do not occupy the thread.
 */
export class ZstdByThread extends Transform {
  bytesWritten = 0;
  readonly #encoded: Buffer[] = [];
  readonly #mostBytes: (encodedBytes: number) => number;

  constructor(mostBytes: (encodedBytes: number) => number) {
    super({ readableHighWaterMark: 131_072 });
    this.#mostBytes = mostBytes;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.bytesWritten += chunk.length;
    this.#encoded.push(chunk);
    done();
  }

  override _flush(done: TransformCallback): void {
    const encoded = this.#encoded.splice(0);
    const mostBytes = this.#mostBytes(this.bytesWritten);
    const job = turn.then(() =>
      this.destroyed ? undefined : decode({ encoded, mostBytes }, (piece) => this.push(piece)),
    );
    turn = job.catch(() => undefined);
    job.then(() => done(), done);
  }
}

function decode(job: ZstdJob, take: (piece: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = idle ?? startWorker();
    idle = undefined;
    worker.ref();
    const tooLong = setTimeout(() => end(new Error('decoding the body took too long')), JOB_WITHIN_MS);
    const onEnd = () => end(new Error('the thread ended'));

    function onMessage(message: FromZstdThread): void {
      if (message === 'whole') end();
      // The reader counts the bytes itself, and has already received a piece too many.
      else if (message === 'too large') end(undefined, false);
      else if ('broken' in message) end(new Error(message.broken));
      else take(Buffer.from(message.piece.buffer, message.piece.byteOffset, message.piece.byteLength));
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
  const { file, execArgv } = ownProgram(require.resolve('./zstd-worker'));
  return new Worker(file, { execArgv, name: 'zstd' });
}
