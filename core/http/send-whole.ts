import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { type AnswerRoom, SMALL_BODY_BYTES } from './buffered-bytes';

/**
 * Sends the body of an answer that is there whole. A large one is written in pieces, which shows whether its client reads. Never
 * rejects. The room is freed by its owner, because the bytes stay in memory to the last piece.
 */
export async function sendWhole(response: ServerResponse, body: Buffer, room: AnswerRoom | undefined): Promise<void> {
  if (body.length <= SMALL_BODY_BYTES) return void response.end(body);
  room?.wait(body.length);
  await pipeline(piecesOf(body, room), response).catch(() => response.destroy());
}

function* piecesOf(body: Buffer, room: AnswerRoom | undefined): Generator<Buffer> {
  for (let at = 0; at < body.length; at += SMALL_BODY_BYTES) {
    room?.read();
    yield body.subarray(at, at + SMALL_BODY_BYTES);
  }
}
