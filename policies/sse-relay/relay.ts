import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Answer } from '../../core/call';
import type { ChunkReader } from '../../core/chunk-reader';
import { type AnsweredCall, setAnswerHeaders, stopWhenClientLeaves } from './headers';

/** An upstream's error or redirect: status and body untouched, at no charge. */
export async function sendRelay(
  call: AnsweredCall,
  answer: Answer & { kind: 'relay' },
  response: ServerResponse,
): Promise<void> {
  setAnswerHeaders(call, answer, response);
  await call.reservation.settle({ billing: 'released' });
  stopWhenClientLeaves(call, answer.chunks);
  await pipeline(bytesOf(answer.head, answer.chunks), response, { signal: call.left }).catch(() => response.destroy());
}

async function* bytesOf(head: readonly Buffer[], chunks: ChunkReader): AsyncGenerator<Buffer> {
  try {
    yield* head;
    for (let next = await chunks.take(); next.done !== true; next = await chunks.take()) yield next.value;
  } finally {
    chunks.cancel();
  }
}
