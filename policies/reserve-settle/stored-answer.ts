import type { ServerResponse } from 'node:http';
import { formatUsd } from '../../core/base/money';
import type { StoredAnswer } from '../../core/calls/answer-store';
import type { Reservation } from '../../core/calls/call';
import { usageRecord } from '../../core/calls/usage-record';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import { AnswerRoom } from '../../core/http/buffered-bytes';
import { sendWhole, setRequestId } from '../../core/http/http';
import type { PayingCall } from './reserve';

/** Headers of the upstream's answer that clients need to read its stored body. */
const KEPT_HEADERS = ['content-type'] as const;

/**
 * Returns the function that makes a reservation store its call's answer once the call is settled; undefined if the operator has not enabled
 * the store. The store expects the answer before money is reserved, because a repeated call may learn of this call before the reserve
 * returns. Storing does not wait for the call's end, because a client that lost its connection may never read the answer.
 */
export function answerKeeper(
  { answers }: Gateway,
  call: PayingCall,
  rid: string,
): ((reservation: Reservation) => Reservation) | undefined {
  const end = answers?.begin(rid, call.key.accountId);
  if (end === undefined) return undefined;
  call.onEnd(() => end(undefined));
  return (reservation) => {
    const settle: Reservation['settle'] = async (ending) => {
      const settlement = await reservation.settle(ending);
      end(storableAnswer(call));
      return settlement;
    };
    return { ...reservation, settle };
  };
}

/** Returns the answer of a settled call if it was unstreamed and charged; otherwise undefined. */
function storableAnswer(call: PayingCall): StoredAnswer | undefined {
  const { answer, meter, facts } = call;
  if (answer?.kind !== 'body' || answer.bytes === undefined || meter === undefined || facts.costE8 === 0n)
    return undefined;
  const { usage } = meter.read();
  const [input, output] = [totalInputTokens(usage), outputTokens(usage) ?? 0];
  const headers = [
    ...KEPT_HEADERS.flatMap((name) => [answer.headers[name] ?? []].flat().flatMap((value) => [name, value])),
    'X-SVC-Repeats',
    call.id,
    'X-Routing-Provider',
    answer.candidate.upstream.name,
    'X-AI-Cost',
    formatUsd(facts.costE8),
    'X-AI-Tokens-Input',
    String(input),
    'X-AI-Tokens-Output',
    String(output),
    'X-AI-Tokens-Total',
    String(input + output),
  ];
  return { status: answer.status, headers, body: copyOf(answer.bytes) };
}

/** Copies the bytes of an answer. They may be a view into a larger buffer, which would then stay in memory as long as the answer. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/**
 * Sends the stored answer of the first call to a repeated call. The repeated call costs nothing and has its own usage record.
 * @throws OVERLOADED if clients of the account leave too many answers unread
 */
export async function sendStored(
  gateway: Gateway,
  call: PayingCall,
  response: ServerResponse,
  stored: StoredAnswer,
): Promise<void> {
  const { facts } = call;
  const room = new AnswerRoom(call.key.accountId);
  call.onEnd(() => room.close());
  room.wait(stored.body.length);
  facts.status = stored.status;
  facts.source = 'provider';
  gateway.refusedCalls.add(usageRecord(call, { billing: 'released' }, gateway.configRevision));
  setRequestId(response, call.id);
  response.setHeader('X-SVC-Source', 'provider');
  response.setHeader('X-Routing-Attempts', '0');
  response.setHeader('X-Routing-Fallback', 'false');
  for (let at = 0; at < stored.headers.length; at += 2)
    response.appendHeader(stored.headers[at] ?? '', stored.headers[at + 1] ?? '');
  response.writeHead(stored.status, { 'content-length': stored.body.length });
  await sendWhole(response, stored.body, room);
}
