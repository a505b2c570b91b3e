import type { FrameDecoder, UpstreamAdapter } from '../catalog/upstream';
import { bytesOf, type ChunkReader, IteratedChunks } from './chunk-reader';
import type { ExchangeHead } from './upstream-exchange';

interface AnswerParts {
  readonly head: ExchangeHead;
  readonly chunks: ChunkReader;
}

/** Returns an answer as server-sent events if its adapter decodes another framing; otherwise returns it unchanged. */
export function unframed({ framing }: Pick<UpstreamAdapter, 'framing'>, { head, chunks }: AnswerParts): AnswerParts {
  if (framing === undefined || mediaTypeOf(head) !== framing.mediaType) return { head, chunks };
  const headers = { ...head.headers, 'content-type': 'text/event-stream' };
  return { head: { ...head, headers }, chunks: new IteratedChunks(decoded(chunks, framing.open()), chunks) };
}

function mediaTypeOf({ headers }: ExchangeHead): string {
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  return type.trim().toLowerCase();
}

async function* decoded(chunks: ChunkReader, decoder: FrameDecoder): AsyncGenerator<Buffer> {
  for await (const chunk of bytesOf(chunks)) {
    const text = decoder.push(chunk);
    if (text !== '') yield Buffer.from(text);
  }
}
