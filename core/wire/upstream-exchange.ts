import type { ReadAhead } from '../http/buffered-bytes';
import { type ChunkReader, notReady } from './chunk-reader';
import { Pauses } from './pauses';

export interface ExchangeHead {
  readonly status: number;
  /** The headers of the answer, with names in lower case. A repeated header has an array of values. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** How many unread bytes pause the sender: one large read. The operating system buffers further bytes. */
const MAX_WAITING_BYTES = 16 * 1024;

/** One request to an upstream and its answer, over any transport. */
export abstract class UpstreamExchange implements ChunkReader {
  pauses: Pauses | undefined;
  /** Memory for unread bytes beyond one large read, so that a short stall of the client does not slow the upstream. */
  ahead: ReadAhead | undefined;
  #head: ExchangeHead | undefined;
  #whenHead: ((head: ExchangeHead) => void) | undefined;
  #whenNoHead: ((error: Error) => void) | undefined;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  /** Calls back once: with the head of the answer, or with the reason why there is none. */
  whenHead(then: (head: ExchangeHead) => void, failed: (error: Error) => void): void {
    if (this.#head !== undefined) then(this.#head);
    else if (this.#failure !== undefined) failed(this.#failure);
    else {
      this.#whenHead = then;
      this.#whenNoHead = failed;
    }
  }

  /** Resolves with the head of the answer. Rejects if there is none. */
  get head(): Promise<ExchangeHead> {
    return new Promise((resolve, reject) => this.whenHead(resolve, reject));
  }

  protected gotHead(head: ExchangeHead): void {
    if (this.#head !== undefined || this.#failure !== undefined) return;
    this.#head = head;
    this.#whenHead?.(head);
    this.#forgetListeners();
  }

  #forgetListeners(): void {
    this.#whenHead = undefined;
    this.#whenNoHead = undefined;
  }

  /** Whether the last byte of the request's body was written to the socket. */
  abstract readonly isRequestSent: boolean;
  protected abstract pauseSender(): void;
  protected abstract resumeSender(): void;
  protected abstract abortSender(reason: Error): void;

  ready(): Promise<void> {
    return this.isReady ? Promise.resolve() : new Promise((resolve) => this.whenReady(resolve));
  }

  whenReady(listener: () => void): void {
    if (this.isReady) return void listener();
    const before = this.#wake;
    this.#wake =
      before === undefined
        ? listener
        : () => {
            before();
            listener();
          };
  }

  take(): Buffer | undefined {
    if (!this.isReady) throw notReady();
    const chunk = this.#waiting.shift();
    if (chunk !== undefined) {
      this.#waitingBytes -= chunk.length;
      if (this.#waitingBytes < MAX_WAITING_BYTES) {
        this.ahead?.giveBack();
        this.#resume();
      }
      return chunk;
    }
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  cancel(reason: Error = new ExchangeCancelled()): void {
    this.ahead?.giveBack();
    if (this.isOver) return;
    this.abortSender(reason);
    this.fail(reason);
  }

  get isReady(): boolean {
    return this.#waiting.length > 0 || this.isOver;
  }

  get isOver(): boolean {
    return this.#ended || this.#failure !== undefined;
  }

  protected get isPaused(): boolean {
    return this.#isPaused;
  }

  protected arrived(chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= MAX_WAITING_BYTES && this.ahead?.holds(this.#waitingBytes) !== true) this.#pause();
    this.#notify();
  }

  protected end(): void {
    this.#ended = true;
    this.pauses?.stop();
    this.#notify();
  }

  protected fail(error: Error): void {
    this.#failure ??= error;
    this.pauses?.stop();
    this.#whenNoHead?.(error);
    this.#forgetListeners();
    this.#notify();
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.pauseSender();
    this.pauses ??= new Pauses();
    this.pauses.begin();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.resumeSender();
    this.pauses?.end();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

class ExchangeCancelled extends Error {
  override readonly name = 'AbortError';
  override readonly message = 'the exchange was cancelled';
}

/** Returns how many milliseconds an upstream asks to wait; undefined if it does not say. */
export function retryAfterMs(headers: ExchangeHead['headers']): number | undefined {
  const text = String(headers['retry-after'] ?? '');
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}
