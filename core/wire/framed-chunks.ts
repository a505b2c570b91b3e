import type { FrameDecoder, UpstreamAdapter } from '../catalog/upstream';
import { type ChunkReader, notReady } from './chunk-reader';
import type { Pauses } from './pauses';
import type { ExchangeHead } from './upstream-exchange';

interface AnswerParts {
  readonly head: ExchangeHead;
  readonly chunks: ChunkReader;
}

/** Returns an answer as server-sent events if its adapter decodes another framing; otherwise returns it unchanged. */
export function unframed({ framing }: Pick<UpstreamAdapter, 'framing'>, { head, chunks }: AnswerParts): AnswerParts {
  if (framing === undefined || mediaTypeOf(head) !== framing.mediaType) return { head, chunks };
  const headers = { ...head.headers, 'content-type': 'text/event-stream' };
  return { head: { ...head, headers }, chunks: new FramedChunks(chunks, framing.open()) };
}

function mediaTypeOf({ headers }: ExchangeHead): string {
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase();
}

/** Reads the output of a decoder of chunks. */
class FramedChunks implements ChunkReader {
  #decoded: Buffer | undefined;
  #hasEnded = false;
  #failure: { readonly thrown: unknown } | undefined;

  constructor(
    private readonly source: ChunkReader,
    private readonly decoder: FrameDecoder,
  ) {}

  get pauses(): Pauses | undefined {
    return this.source.pauses;
  }

  get isReady(): boolean {
    while (!this.#hasSome && this.source.isReady) this.#read();
    return this.#hasSome;
  }

  async ready(): Promise<void> {
    while (!this.isReady) await this.source.ready();
  }

  take(): Buffer | undefined {
    if (!this.isReady) throw notReady();
    if (this.#failure !== undefined) throw this.#failure.thrown;
    const decoded = this.#decoded;
    this.#decoded = undefined;
    return decoded;
  }

  cancel(): void {
    this.source.cancel();
  }

  get #hasSome(): boolean {
    return this.#decoded !== undefined || this.#hasEnded || this.#failure !== undefined;
  }

  #read(): void {
    try {
      const chunk = this.source.take();
      if (chunk === undefined) {
        this.#hasEnded = true;
        return;
      }
      const text = this.decoder.push(chunk);
      if (text !== '') this.#decoded = Buffer.from(text);
    } catch (thrown) {
      this.#failure = { thrown };
    }
  }
}
