import type { ServerResponse } from 'node:http';
import type { Answer } from '../../core/call';
import type { ChunkReader } from '../../core/chunk-reader';
import type { CallWith } from '../../core/policy';

export type AnsweredCall = CallWith<'request' | 'reservation' | 'meter' | 'answer'>;

/** The upstream's headers that are passed on, then ours of spec section 2.4. Nothing is sent yet. */
export function setAnswerHeaders(call: AnsweredCall, answer: Answer, response: ServerResponse): void {
  const { facts } = call;
  facts.status = answer.status;
  facts.source = 'provider';
  response.statusCode = answer.status;
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && isPassedOn(name, answer.status, call.request.forwardHeaderPrefixes))
      response.setHeader(name, value);
  }
  response.setHeader('x-svc-source', 'provider');
  response.setHeader('x-routing-provider', answer.candidate.upstream.name);
  response.setHeader('x-routing-attempts', String(facts.attempts));
  response.setHeader('x-routing-fallback', String(facts.fallback));
}

function isPassedOn(name: string, status: number, prefixes: readonly string[]): boolean {
  if (name === 'content-type' || name === 'retry-after') return true;
  if (name === 'location') return status >= 300 && status < 400;
  return prefixes.some((prefix) => name.startsWith(prefix));
}

/** A relay that waits for the upstream's next byte does not see its client leave; the upstream is told at once. */
export function stopWhenClientLeaves(call: AnsweredCall, chunks: ChunkReader): void {
  if (call.left.aborted) chunks.cancel();
  else call.left.addEventListener('abort', () => chunks.cancel(), { once: true });
}
