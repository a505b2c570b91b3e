import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { fail } from '../../core/base/errors';
import { andThen, type MaybeLater } from '../../core/base/maybe-later';
import { formatUsd } from '../../core/base/money';
import type { Answer } from '../../core/calls/call';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { ClientLeft } from '../../core/http/client-left';
import { sendWhole } from '../../core/http/http';
import { bytesOf, type ChunkReader } from '../../core/wire/chunk-reader';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';

/**
 * Sends an unstreamed answer. The gateway charges it first, because the headers report the cost. If the client has disconnected, the answer
 * is charged nevertheless.
 * @throws OVERLOADED after the charge, if there was no memory for the answer
 */
export function sendBody(
  call: AnsweredCall,
  answer: Answer & { kind: 'body' },
  response: ServerResponse,
  exposeAccountHeaders: boolean,
): MaybeLater<void> {
  const { meter, reservation } = call;
  if (call.cutOffBy !== undefined) throw new ClientLeft();
  noteAnswer(call, answer);
  meter.noteBody(answer.usage, answer.contentBytes);
  const counted = meter.read();
  const { usage, isEstimate, billing } = counted;
  const ending = { candidate: answer.candidate, usage, isEstimate, billing };
  return andThen(reservation.settle(ending), ({ chargedE8 }) => {
    if (call.leftAtMs !== undefined) throw new ClientLeft();
    const cost = formatUsd(chargedE8);
    if (answer.bytes === undefined) throw noRoom(cost);
    const inputTokens = totalInputTokens(counted.usage);
    const saidTokens = outputTokens(counted.usage) ?? 0;
    const headers = answerHeaders(call, answer, exposeAccountHeaders);
    headers.push(
      'X-AI-Cost',
      cost,
      'X-AI-Tokens-Input',
      String(inputTokens),
      'X-AI-Tokens-Output',
      String(saidTokens),
      'X-AI-Tokens-Total',
      String(inputTokens + saidTokens),
      'content-length',
      String(answer.bytes.length),
    );
    response.writeHead(answer.status, headers);
    return sendWhole(response, answer.bytes, call.room);
  });
}

/** Returns an error that is not retryable, because a repeated call would be charged again and fail too. */
function noRoom(cost: string) {
  return fail('OVERLOADED', {
    message:
      'This answer was charged but discarded, because clients of this account leave too many earlier answers unread.',
    retryable: false,
    headers: { 'X-AI-Cost': cost },
  });
}

/** A status that never has a body, whatever its headers say. Reading a body would fail. */
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
  // The client receives the status at once, because the status is useful even if the body ends early.
  response.flushHeaders();
  // While the gateway waits for the upstream's next byte, it would not notice that the client left. This listener cancels the upstream at once.
  call.onLeave(() => answer.chunks.cancel());
  call.room?.wait(answer.head.reduce((sum, { length }) => sum + length, 0));
  await pipeline(inOrder(answer.head, answer.chunks), response, { signal: call.left }).catch(() => response.destroy());
}

async function* inOrder(head: readonly Buffer[], chunks: ChunkReader): AsyncGenerator<Buffer> {
  yield* head;
  yield* bytesOf(chunks);
}
