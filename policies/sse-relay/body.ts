import type { ServerResponse } from 'node:http';
import type { Answer } from '../../core/calls/call';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { fail } from '../../core/errors';
import { ClientLeft } from '../../core/http/client-left';
import { sendWhole } from '../../core/http/send-whole';
import { formatUsd } from '../../core/money';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';

/**
 * Sends an unstreamed answer. The charge comes first, because the headers say what the answer cost. If the client has left, the
 * answer is charged all the same.
 * @throws OVERLOADED after the charge, if there was no room for the answer
 */
export async function sendBody(
  call: AnsweredCall,
  answer: Answer & { kind: 'body' },
  response: ServerResponse,
  exposeAccountHeaders: boolean,
): Promise<void> {
  const { meter, reservation, room } = call;
  if (call.cutOffBy !== undefined) throw new ClientLeft();
  noteAnswer(call, answer);
  meter.noteBody(answer.usage, answer.contentBytes);
  const counted = meter.read();
  const { chargedE8 } = await reservation.settle({ candidate: answer.candidate, ...counted });
  if (call.leftAtMs !== undefined) throw new ClientLeft();
  const cost = formatUsd(chargedE8);
  if (answer.bytes === undefined) throw noRoom(cost);
  const inputTokens = totalInputTokens(counted.usage);
  const saidTokens = outputTokens(counted.usage) ?? 0;
  response.writeHead(answer.status, [
    ...answerHeaders(call, answer, exposeAccountHeaders),
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
  ]);
  await sendWhole(response, answer.bytes, room);
}

/** A repeat would be charged again, and find as little room. */
function noRoom(cost: string) {
  return fail('OVERLOADED', {
    message: 'This answer was charged but not kept: clients of this account leave too many earlier answers unread.',
    retryable: false,
    headers: { 'X-AI-Cost': cost },
  });
}
