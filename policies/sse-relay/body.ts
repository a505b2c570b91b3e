import type { ServerResponse } from 'node:http';
import type { Answer } from '../../core/calls/call';
import { hasOutput } from '../../core/catalog/protocols';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { ClientLeft } from '../../core/http/client-left';
import { formatUsd } from '../../core/money';
import { PARSED_AT_MOST_BYTES } from '../../core/wire/read-answer';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';

/**
 * Sends an unstreamed answer. The charge comes first, because the headers say what the answer cost. If the client has left, the
 * answer is charged all the same.
 */
export async function sendBody(
  call: AnsweredCall,
  answer: Answer & { kind: 'body' },
  response: ServerResponse,
  exposeAccountHeaders: boolean,
): Promise<void> {
  const { meter, reservation } = call;
  if (call.cutOffBy !== undefined) throw new ClientLeft();
  noteAnswer(call, answer);
  const { usage, contentBytes } = answer;
  const isUnread = contentBytes === 0 && hasOutput(call.protocol);
  meter.noteBody(usage, isUnread ? bytesOfUnread(answer.bytes) : contentBytes);
  const counted = meter.read();
  const { chargedE8 } = await reservation.settle({ candidate: answer.candidate, ...counted });
  if (call.leftAtMs !== undefined) throw new ClientLeft();
  const inputTokens = totalInputTokens(counted.usage);
  const saidTokens = outputTokens(counted.usage) ?? 0;
  response.writeHead(answer.status, [
    ...answerHeaders(call, answer, exposeAccountHeaders),
    'X-AI-Cost',
    formatUsd(chargedE8),
    'X-AI-Tokens-Input',
    String(inputTokens),
    'X-AI-Tokens-Output',
    String(saidTokens),
    'X-AI-Tokens-Total',
    String(inputTokens + saidTokens),
    'content-length',
    String(answer.bytes.length),
  ]);
  response.end(answer.bytes);
}

/** Returns the length of an answer that was too long to parse. It counts as the length of the text if the upstream's counts are unusable. */
function bytesOfUnread({ length }: Buffer): number {
  return length > PARSED_AT_MOST_BYTES ? length : 0;
}
