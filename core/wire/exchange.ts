import { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { ReadAhead } from '../http/buffered-bytes';
import { bytesOf, type ChunkReader, notReady, type Over, StreamChunks } from './chunk-reader';
import { Pauses } from './pauses';
import { isBodySent } from './sent-bodies';

export interface ExchangeHead {
  readonly status: number;
  /** Names in lower case; a name that came twice has an array. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Far more than the one or two that servers send before an answer. */
const MOST_INTERIM_ANSWERS = 16;

/** Bytes that wait to be taken before the sender is slowed down: one large read, for the system's own buffers follow. */
const WAITING_AT_MOST_BYTES = 16 * 1024;

/**
 * One request to an upstream and its answer, straight on undici's dispatch: without the streams and abort signals of its
 * `request`, which cost 40 µs of CPU a call.
 */
export class Exchange implements ChunkReader, Dispatcher.DispatchHandler {
  /** Resolves with the head of the answer; rejects when there is none. */
  readonly head: Promise<ExchangeHead>;
  over: Over | undefined;
  #pauses: Pauses | undefined;
  /** What may wait here beyond one large read, so that a client's short stall does not reach the upstream. */
  ahead: ReadAhead | undefined;
  readonly #body: Dispatcher.DispatchOptions['body'];
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #cancelled: Error | undefined;
  #ended = false;
  #interimAnswers = 0;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #gotHead!: (head: ExchangeHead) => void;
  #noHead!: (error: Error) => void;

  constructor(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions) {
    this.head = new Promise((resolve, reject) => {
      this.#gotHead = resolve;
      this.#noHead = reject;
    });
    this.#body = request.body;
    try {
      dispatcher.dispatch(request, this);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  ready(): Promise<void> {
    if (this.isReady) return Promise.resolve();
    return new Promise((resolve) => {
      const before = this.#wake;
      this.#wake = () => {
        before?.();
        resolve();
      };
    });
  }

  take(): Buffer | undefined {
    if (!this.isReady) throw notReady();
    const chunk = this.#waiting.shift();
    if (chunk !== undefined) {
      this.#waitingBytes -= chunk.length;
      if (this.#waitingBytes < WAITING_AT_MOST_BYTES) {
        this.ahead?.giveBack();
        if (this.#controller?.paused === true) this.#resume(this.#controller);
      }
      return chunk;
    }
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  cancel(reason: Error = new ExchangeCancelled()): void {
    this.ahead?.giveBack();
    if (this.#ended || this.#failure !== undefined || this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    this.#controller?.abort(reason);
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#cancelled !== undefined) controller.abort(this.#cancelled);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ExchangeHead['headers']): void {
    if (status >= 200) this.#gotHead({ status, headers });
    else this.#noteInterim(controller);
  }

  /** Interim answers (1xx) are not the answer; an upstream that sends nothing else would take all of the CPU meanwhile. */
  #noteInterim(controller: Dispatcher.DispatchController): void {
    this.#interimAnswers += 1;
    if (this.#interimAnswers > MOST_INTERIM_ANSWERS) controller.abort(new TooManyInterimAnswers());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= WAITING_AT_MOST_BYTES && this.ahead?.holds(this.#waitingBytes) !== true)
      this.#pause(controller);
    this.#tell();
  }

  #pause(controller: Dispatcher.DispatchController): void {
    if (controller.paused) return;
    controller.pause();
    this.#pauses ??= new Pauses();
    this.#pauses.begin(performance.now());
  }

  #resume(controller: Dispatcher.DispatchController): void {
    controller.resume();
    this.#pauses?.end(performance.now());
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#noteOver();
    this.#tell();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  /** The last byte of the request's body was handed to the socket. */
  get isRequestSent(): boolean {
    return typeof this.#body === 'object' && this.#body !== null && isBodySent(this.#body);
  }

  get isReady(): boolean {
    return this.#waiting.length > 0 || this.#ended || this.#failure !== undefined;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#noteOver();
    this.#noHead(error);
    this.#tell();
  }

  #noteOver(): void {
    const toMs = performance.now();
    this.over ??= { fromMs: this.#pauses?.endedSince(toMs) ?? toMs, toMs };
  }

  #tell(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

class TooManyInterimAnswers extends Error {
  override readonly name = 'TooManyInterimAnswers';
  override readonly message = `the upstream sent more than ${MOST_INTERIM_ANSWERS} interim answers (1xx)`;
}

/** Why an exchange ended: we wanted no more of it. */
class ExchangeCancelled extends Error {
  override readonly name = 'AbortError';
  override readonly message = 'the exchange was cancelled';
}

/** The answer's bytes as they mean: decoded, when an upstream compresses although it was asked not to. */
export function decodedChunks(exchange: Exchange, { status, headers }: ExchangeHead): ChunkReader {
  const decoder = decoderOf(headers['content-encoding']);
  if (decoder === undefined || status === 204 || status === 304 || headers['content-length'] === '0') return exchange;
  const source = Readable.from(bytesOf(exchange), { objectMode: false });
  source.once('error', (error) => decoder.destroy(error));
  // A decoder that was given up, or that failed, takes nothing more: `pipe` only lets go of the source.
  decoder.once('close', () => exchange.cancel());
  return new StreamChunks(source.pipe(decoder), exchange);
}

function decoderOf(encoding: string | string[] | undefined) {
  switch (encoding === undefined ? 'identity' : String(encoding).toLowerCase()) {
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
