import type { ModelRequest } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import { TRANSLATED } from '../../core/catalog/protocols';
import { asObject } from '../../core/json-values';
import { type TranslatedBody, type TranslatedEvent, Translation } from '../../core/protocols/translation';
import { type ChunkReader, readAll } from '../../core/wire/chunk-reader';
import { classifyDialFailure } from '../../core/wire/egress';
import { type SseFrame, SseSplitter } from '../../core/wire/sse';

/** The largest stream that becomes a body. */
const LARGEST_BYTES = 1024 * 1024;

/** Returns a translation within one protocol, which makes a stream of a body and a body of a stream; undefined where there is none. */
export function sameProtocol(candidate: Candidate, request: ModelRequest, requestId: string): Translation | undefined {
  const { protocol, stream, choices } = request;
  if (!TRANSLATED.some((each) => each === protocol)) return undefined;
  const conversation = { instructions: [], turns: [], tools: [], choices, stream, stop: [] };
  const { model, upstream } = candidate;
  const asked = { conversation, model: model.name, maxOutput: model.maxOutput, upstream: upstream.name };
  return new Translation(candidate, { requestId, protocol, asked, request: asObject(request.read()) ?? {} });
}

/** Returns an unstreamed answer as a stream; undefined if it is no answer of its protocol. */
export function asStream(translation: Translation | undefined, body: unknown): TranslatedEvent | undefined {
  try {
    return translation?.streamed(body);
  } catch {
    return undefined;
  }
}

/**
 * Returns a stream as a body; undefined if it is too long, not whole, or no answer of its protocol.
 * @throws if the upstream fell silent
 */
export async function asBody(
  translation: Translation | undefined,
  chunks: ChunkReader,
): Promise<(TranslatedBody & { readonly events: readonly SseFrame[] }) | undefined> {
  try {
    const splitter = new SseSplitter();
    const events = splitter.push(await readAll(chunks, LARGEST_BYTES));
    const last = splitter.end();
    if (last !== undefined) events.push(last);
    const read = translation?.gathered(events);
    return read && { ...read, events };
  } catch (error) {
    if (classifyDialFailure(error) === 'timeout') throw error;
    return undefined;
  }
}
