import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Answer } from '../../core/calls/call';
import { ClientLeft } from '../../core/http/client-left';
import { bytesOf, type ChunkReader } from '../../core/wire/chunk-reader';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';

/** The status that never has a body, whatever its headers say. Reading one would fail. */
const NOT_MODIFIED = 304;

/** Sends an upstream's error or redirect with its status and body unchanged, free of charge. */
export async function sendRelay(
  call: AnsweredCall,
  answer: Answer & { kind: 'relay' },
  response: ServerResponse,
  exposeAccountHeaders: boolean,
): Promise<void> {
  noteAnswer(call, answer);
  await call.reservation.settle({ billing: 'released' });
  if (call.leftAtMs !== undefined) {
    answer.chunks.cancel();
    throw new ClientLeft();
  }
  response.writeHead(answer.status, answerHeaders(call, answer, exposeAccountHeaders));
  if (answer.status === NOT_MODIFIED) {
    answer.chunks.cancel();
    response.end();
    return;
  }
  // The client gets the status at once, because it is an answer even if the body ends early.
  response.flushHeaders();
  // A wait for the upstream's next byte does not notice that the client leaves, so this cancels the upstream at once.
  call.onLeave(() => answer.chunks.cancel());
  call.room?.wait(answer.head.reduce((sum, { length }) => sum + length, 0));
  await pipeline(inOrder(answer.head, answer.chunks), response, { signal: call.left }).catch(() => response.destroy());
}

async function* inOrder(head: readonly Buffer[], chunks: ChunkReader): AsyncGenerator<Buffer> {
  yield* head;
  yield* bytesOf(chunks);
}
