import type { ServerResponse } from 'node:http';
import type { StoredAnswer } from '../../core/calls/answer-store';
import type { CallFields, Reservation } from '../../core/calls/call';
import { usageRecord } from '../../core/calls/usage-record';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import type { Gateway } from '../../core/gateway/gateway';
import { setRequestId } from '../../core/http/http';
import { formatUsd } from '../../core/money';
import type { PayingCall } from './reserve';

/** Headers of the upstream's answer that say how to read its body. */
const KEPT_HEADERS = ['content-type'] as const;

/** What later steps have left on a call when it is settled. */
type SettledCall = PayingCall & Partial<Pick<CallFields, 'answer' | 'meter'>>;

/**
 * Returns what makes a reservation hand its call's answer to the store once it is settled; undefined where the operator has not
 * switched the store on. It begins before the reserve, because a repetition may be told that this call is open before this
 * call is told so. It does not wait for the call's end, because a client that has lost its connection may never take the answer.
 */
export function answerKeeper(
  { answers }: Gateway,
  call: PayingCall,
  rid: string,
): ((reservation: Reservation) => Reservation) | undefined {
  const end = answers?.begin(rid);
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

/** Returns the answer of a call that was settled, if it came in one piece and was charged. */
function storableAnswer(call: SettledCall): StoredAnswer | undefined {
  const { answer, meter, facts } = call;
  if (answer?.kind !== 'body' || meter === undefined || facts.costE8 === 0n) return undefined;
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

/** Bytes may be a view of a larger buffer, which a kept view would keep whole. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Answers a repetition with what its first call was answered. It costs nothing and has a usage record of its own. */
export function sendStored(gateway: Gateway, call: PayingCall, response: ServerResponse, stored: StoredAnswer): void {
  const { facts } = call;
  facts.status = stored.status;
  facts.source = 'provider';
  gateway.refusedCalls.add(usageRecord(call, { billing: 'released', configRevision: gateway.configRevision }));
  setRequestId(response, call.id);
  response.setHeader('X-SVC-Source', 'provider');
  response.setHeader('X-Routing-Attempts', '0');
  response.setHeader('X-Routing-Fallback', 'false');
  for (let at = 0; at < stored.headers.length; at += 2)
    response.appendHeader(stored.headers[at] ?? '', stored.headers[at + 1] ?? '');
  response.writeHead(stored.status, { 'content-length': stored.body.length });
  response.end(stored.body);
}
