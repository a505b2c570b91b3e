import type { CallKey } from '../../core/accounts/identify';
import type { Answer } from '../../core/calls/call';
import { ROUTING_HEADER, routingHeader } from '../../core/calls/routing-header';
import type { CallWith } from '../../core/gateway/policy';
import { CLIENT_LEFT_STATUS } from '../../core/http/client-left';
import { passedAs } from './passed-headers';

export type AnsweredCall = CallWith<'request' | 'reservation' | 'meter' | 'answer'> & {
  readonly key: Pick<CallKey, 'accountId'>;
};

/** Records an answer in the usage record before it is sent, or before it is only charged because its client has left. */
export function noteAnswer({ facts, leftAtMs }: AnsweredCall, answer: Answer): void {
  if (leftAtMs !== undefined) {
    facts.status = CLIENT_LEFT_STATUS;
    facts.errorCode = 'CLIENT_LEFT';
    return;
  }
  if (answer.kind === 'body' && answer.bytes === undefined) {
    facts.status = 503;
    facts.errorCode = 'OVERLOADED';
    return;
  }
  facts.status = answer.status;
  facts.source = 'provider';
}

/** Returns the gateway's headers (docs/contract.md, section 4.3), then those of the upstream that pass: names and values in turn. */
export function answerHeaders(
  { id, startedMs, facts, request }: AnsweredCall,
  answer: Answer,
  exposeAccountHeaders: boolean,
): string[] {
  facts.addedMs = performance.now() - startedMs - facts.waitedMs;
  const headers = [
    'X-SVC-Source',
    'provider',
    'X-SVC-Request-Id',
    id,
    'request-id',
    id,
    'x-request-id',
    id,
    'X-Routing-Provider',
    answer.candidate.upstream.name,
    'X-Routing-Attempts',
    String(facts.attempts),
    'X-Routing-Fallback',
    String(facts.fallback),
  ];
  if (answer.candidate.dialect !== undefined) headers.push('X-Routing-Translated', 'true');
  const routing = routingHeader(facts.routing);
  if (routing !== undefined) headers.push(ROUTING_HEADER, routing);
  const rules = { forwardHeaderPrefixes: request.forwardHeaderPrefixes, exposeAccountHeaders };
  for (const name of Object.keys(answer.headers)) {
    const value = answer.headers[name];
    const passed = value === undefined ? undefined : passedAs(name, answer.status, rules);
    if (value === undefined || passed === undefined) continue;
    for (const each of typeof value === 'string' ? [value] : value) headers.push(passed, each);
  }
  return headers;
}
