import type { ServerResponse } from 'node:http';
import { type Answer, ClientLeft } from '../../core/call';
import { formatUsd } from '../../core/money';
import { totalInputTokens } from '../../core/price';
import { PARSED_AT_MOST_BYTES } from '../../core/read-answer';
import { type AnsweredCall, answerHeaders, noteAnswer } from './headers';

/** An unstreamed answer: charged first, so that its headers can say what it cost. */
export async function sendBody(
  call: AnsweredCall,
  answer: Answer & { kind: 'body' },
  response: ServerResponse,
  exposeAccountHeaders: boolean,
): Promise<void> {
  const { meter, reservation } = call;
  noteAnswer(call, answer);
  const { usage, contentBytes } = answer;
  meter.noteBody(usage, contentBytes > 0 ? contentBytes : bytesOfUnread(answer.bytes));
  if (call.hasLeft) throw new ClientLeft();
  const counted = meter.read();
  const { chargedE8 } = await reservation.settle({ candidate: answer.candidate, ...counted });
  const inputTokens = totalInputTokens(counted.usage);
  const outputTokens = counted.usage.outputTokens ?? 0;
  response.writeHead(answer.status, [
    ...answerHeaders(call, answer, exposeAccountHeaders),
    'X-AI-Cost',
    formatUsd(chargedE8),
    'X-AI-Tokens-Input',
    String(inputTokens),
    'X-AI-Tokens-Output',
    String(outputTokens),
    'X-AI-Tokens-Total',
    String(inputTokens + outputTokens),
    'content-length',
    String(answer.bytes.length),
  ]);
  response.end(answer.bytes);
}

/** An answer whose text was not read counts by its length, where its own counts are unusable. */
function bytesOfUnread({ length }: Buffer): number {
  return length > PARSED_AT_MOST_BYTES ? length : 0;
}
