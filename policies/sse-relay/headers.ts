import type { Answer } from '../../core/calls/call';
import { ROUTING_HEADER, routingHeader } from '../../core/calls/routing-header';
import type { CallWith } from '../../core/gateway/policy';
import { CLIENT_LEFT_STATUS } from '../../core/http/client-left';

export type AnsweredCall = CallWith<'key' | 'request' | 'reservation' | 'meter' | 'answer'>;

/** Records an answer in the usage record. Call it before the gateway sends the answer, or before it charges an answer whose client has disconnected. */
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

/** Returns the gateway's headers (docs/contract.md, section 4.3), then the upstream's headers that pass. The list alternates names and values. */
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
  if (answer.candidate.dialect !== undefined) {
    const weakened = facts.weakened.map((member) => `;weaker="${member}"`).join('');
    headers.push('X-Routing-Translated', `true${weakened}`);
  }
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

/** The settings that decide which of an upstream's headers a client gets. */
interface HeaderRules {
  readonly forwardHeaderPrefixes: readonly string[];
  /** Whether clients may see headers about the platform's own account at the upstream. */
  readonly exposeAccountHeaders: boolean;
}

const PASSED: ReadonlySet<string> = new Set([
  'content-type',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'openai-processing-ms',
  'openai-version',
  'openai-model',
]);

/** Matches headers that only the gateway writes, whatever prefixes are configured. */
const OURS = /^x-(?:svc|routing|ai)-/;
const REQUEST_ID = /^(?:x-)?request-id$/;
const OF_THE_ACCOUNT = /-ratelimit-|organization|project/;

/** Returns the name under which the client receives an upstream's header; undefined if the gateway withholds it. */
function passedAs(name: string, status: number, rules: HeaderRules): string | undefined {
  if (PASSED.has(name)) return name;
  if (name === 'location') return status >= 300 && status < 400 ? name : undefined;
  if (REQUEST_ID.test(name)) return rules.exposeAccountHeaders ? 'x-upstream-request-id' : undefined;
  if (OF_THE_ACCOUNT.test(name)) return rules.exposeAccountHeaders ? name : undefined;
  if (OURS.test(name)) return undefined;
  return rules.forwardHeaderPrefixes.some((prefix) => name.startsWith(prefix)) ? name : undefined;
}
