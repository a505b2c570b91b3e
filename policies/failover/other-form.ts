import { asObject } from '../../core/base/json-values';
import type { ModelRequest } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import { TRANSLATED } from '../../core/catalog/protocols';
import { Translation } from '../../core/protocols/translation';
import { type ChunkReader, readAll } from '../../core/wire/chunk-reader';
import { type SseFrame, splitWhole } from '../../core/wire/sse';

/** The largest stream that the gateway converts to a body, in bytes. */
const MAX_BYTES = 1024 * 1024;

/** Returns a translation between a stream and a whole body of the same protocol; undefined if the protocol has no such translation. */
export function sameProtocol(candidate: Candidate, request: ModelRequest, requestId: string): Translation | undefined {
  const { protocol, stream, choices } = request;
  if (!TRANSLATED.some((each) => each === protocol)) return undefined;
  const conversation = { instructions: [], turns: [], tools: [], choices, stream, stop: [] };
  const { model, upstream } = candidate;
  const asked = { conversation, model: model.name, maxOutput: model.maxOutput, upstream: upstream.name };
  return new Translation(candidate, { requestId, protocol, asked, request: asObject(request.read()) ?? {} });
}

/** Reads a stream to its end. @throws if it is too long for a body */
export async function readEvents(chunks: ChunkReader): Promise<readonly SseFrame[]> {
  return splitWhole([await readAll(chunks, MAX_BYTES)]);
}
