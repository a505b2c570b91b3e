import { subscribe } from 'node:diagnostics_channel';
import { pipeline } from 'node:stream';
import type { Dispatcher } from 'undici';
import { DECODERS } from '../http/body-decoder';
import { bytesOf, type ChunkReader, IteratedChunks } from './chunk-reader';
import { type ExchangeHead, UpstreamExchange } from './upstream-exchange';

/** Marks a body that was sent. undici does not report this to its handlers, but its diagnostics channels do. */
const IS_SENT = Symbol('is sent');

/** The body of a request, with a mark once it was sent. The mark is on the body, because a set of all sent bodies costs the garbage collector more. */
type MarkedBody = object & { [IS_SENT]?: true };

subscribe('undici:request:bodySent', (message) => {
  const { body } = (message as { readonly request: { readonly body: MarkedBody | null } }).request;
  if (body !== null) body[IS_SENT] = true;
});

/** The maximum number of interim answers (1xx). Servers send one or two before an answer. */
const MAX_INTERIM_ANSWERS = 16;

/**
 * One request over HTTP. It uses undici's `dispatch` directly, because the streams and abort signals of its `request` cost 40 µs
 * of CPU a call.
 */
export class Exchange extends UpstreamExchange implements Dispatcher.DispatchHandler {
  readonly #body: Dispatcher.DispatchOptions['body'];
  #controller: Dispatcher.DispatchController | undefined;
  #cancelled: Error | undefined;
  #interimAnswers = 0;

  constructor(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions) {
    super();
    this.#body = request.body;
    try {
      dispatcher.dispatch(request, this);
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#cancelled !== undefined) controller.abort(this.#cancelled);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ExchangeHead['headers']): void {
    if (status >= 200) this.gotHead({ status, headers });
    else this.#noteInterim(controller);
  }

  /** Limits interim answers (1xx), because an upstream that sends nothing else could use up the CPU. */
  #noteInterim(controller: Dispatcher.DispatchController): void {
    this.#interimAnswers += 1;
    if (this.#interimAnswers > MAX_INTERIM_ANSWERS) controller.abort(new TooManyInterimAnswers());
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.arrived(chunk);
  }

  onResponseEnd(): void {
    this.end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }

  get isRequestSent(): boolean {
    // The request counts as received by the upstream once its last byte was sent.
    const body = this.#body as MarkedBody | null | undefined;
    return typeof body === 'object' && body !== null && body[IS_SENT] === true;
  }

  protected pauseSender(): void {
    this.#controller?.pause();
  }

  protected resumeSender(): void {
    this.#controller?.resume();
  }

  protected abortSender(reason: Error): void {
    this.#cancelled = reason;
    this.#controller?.abort(reason);
  }
}

class TooManyInterimAnswers extends Error {
  override readonly name = 'TooManyInterimAnswers';
  override readonly message = `the upstream sent more than ${MAX_INTERIM_ANSWERS} interim answers (1xx)`;
}

/** Returns the answer's bytes. Decodes them if the upstream has compressed them although the request did not allow it. */
export function decodedChunks(exchange: UpstreamExchange, { status, headers }: ExchangeHead): ChunkReader {
  const decoder = DECODERS.get(String(headers['content-encoding']).toLowerCase())?.();
  if (decoder === undefined || status === 204 || status === 304 || headers['content-length'] === '0') return exchange;
  // The event `error` of the decoder is ignored, because the reader gets the failure when it takes the next chunk.
  decoder.on('error', () => undefined);
  pipeline(bytesOf(exchange), decoder, () => undefined);
  // A decoder that fails, or whose reader stops, ends the exchange at once.
  decoder.once('close', () => exchange.cancel());
  return new IteratedChunks(decoder.iterator() as AsyncIterator<Buffer>, {
    cancel: () => decoder.destroy(),
    get pauses() {
      return exchange.pauses;
    },
  });
}
