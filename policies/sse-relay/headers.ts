import type { Answer } from '../../core/call';
import type { CallWith } from '../../core/policy';
import { ROUTING_HEADER, routingHeader } from '../../core/routing-header';

export type AnsweredCall = CallWith<'request' | 'reservation' | 'meter' | 'answer'>;

/** What the usage record says of an answer that is about to be given. */
export function noteAnswer({ facts }: AnsweredCall, answer: Answer): void {
  facts.status = answer.status;
  facts.source = 'provider';
}

/** The upstream's headers that are passed on, then ours of spec section 2.4: names and values in turn. */
export function answerHeaders({ id, facts, request }: AnsweredCall, answer: Answer): string[] {
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
  const routing = routingHeader(facts.routing);
  if (routing !== undefined) headers.push(ROUTING_HEADER, routing);
  for (const name of Object.keys(answer.headers)) {
    const value = answer.headers[name];
    if (value === undefined || !isPassedOn(name, answer.status, request.forwardHeaderPrefixes)) continue;
    for (const each of typeof value === 'string' ? [value] : value) headers.push(name, each);
  }
  return headers;
}

function isPassedOn(name: string, status: number, prefixes: readonly string[]): boolean {
  if (name === 'content-type' || name === 'retry-after') return true;
  if (name === 'location') return status >= 300 && status < 400;
  return prefixes.some((prefix) => name.startsWith(prefix));
}
