import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, type Attempt, type CallFacts, ClientLeft } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { fail, type GatewayError } from '../../core/errors';
import { definePolicy } from '../../core/policy';
import { DURATION, parseDuration } from '../../core/settings';
import { attempt } from './attempt';
import { type Decision, decide, type Failure } from './decide';

export default definePolicy({
  name: 'failover',
  summary: 'Which upstream answers? Its first content is seen, nothing is sent yet.',
  schema: {
    type: 'object',
    properties: {
      maxAttempts: { description: 'Attempts in all.', type: 'integer', minimum: 1, maximum: 20, default: 4 },
      sameUpstreamRetries: {
        description: 'Further attempts at the last candidate when no other is left.',
        type: 'integer',
        minimum: 0,
        maximum: 10,
        default: 1,
      },
      midStream: {
        description: "When a stream breaks after content: `error` ends it with the protocol's own error event.",
        enum: ['error'],
        default: 'error',
      },
      preambleHold: {
        ...DURATION,
        description: "How long a stream's preamble is held back for its first content.",
        default: '15s',
      },
    },
  },
  needs: ['request', 'candidates', 'meter'],
  provides: ['answer'],
  prepare: ({ maxAttempts, sameUpstreamRetries, preambleHold }, gateway) => {
    const preambleHoldMs = parseDuration(preambleHold);
    return async (call) => {
      const { request, meter, facts } = call;
      const attempts: Attempt[] = [];
      let waiting = [...call.candidates];
      let candidate = waiting.shift();
      let retriesLeft = sameUpstreamRetries;
      let lastFailure: Failure | undefined;
      let relay: Answer | undefined;
      while (candidate !== undefined) {
        const startedMs = performance.now();
        tell(facts, candidate, call.candidates[0], attempts.length + 1);
        meter.begin(candidate);
        const attempted = await attempt(candidate, request, gateway.egress, call, preambleHoldMs);
        const ms = Math.round(performance.now() - startedMs);
        const upstream = candidate.upstream.name;
        if ('answer' in attempted) {
          if (attempted.answer.kind === 'stream') facts.firstTokenMs = Math.round(performance.now() - call.startedMs);
          gateway.health.answered(candidate, { ms, stream: request.stream });
          facts.routing.attempts.push({
            upstream,
            outcome: 'answered',
            status: attempted.answer.status,
            ms,
            why: undefined,
          });
          return { answer: attempted.answer };
        }
        const { failure } = attempted;
        attempts.push({ upstream, outcome: failure.outcome, status: failure.status, ms });
        gateway.health.failed(candidate, failure);
        const decision = decide(failure, {
          attemptsLeft: maxAttempts - attempts.length,
          candidatesLeft: waiting.length,
          retriesLeft,
        });
        facts.routing.attempts.push({
          upstream,
          outcome: failure.outcome,
          status: failure.status,
          ms,
          why: decision.why,
        });
        gateway.log.debug(
          { requestId: call.id, upstream, outcome: failure.outcome, status: failure.status, ms, ...decision },
          'an attempt failed',
        );
        lastFailure = failure;
        relay = attempted.relay;
        if (decision.do === 'relay' && relay !== undefined) return { answer: relay };
        if (decision.do === 'relay' || decision.do === 'give-up') break;
        if (decision.do === 'retry') {
          cancel(relay);
          retriesLeft -= 1;
          await sleep(decision.afterMs * (1 + Math.random() / 4), undefined, { signal: call.left }).catch(
            () => undefined,
          );
          continue;
        }
        waiting = stillFit(waiting, candidate, decision);
        if (waiting.length === 0 && decision.largerContextOnly && relay !== undefined) return { answer: relay };
        cancel(relay);
        candidate = waiting.shift();
      }
      if (call.hasLeft) throw new ClientLeft();
      if (lastFailure?.status === 404 || lastFailure?.status === 409) if (relay !== undefined) return { answer: relay };
      cancel(relay);
      throw errorOf(attempts, lastFailure);
    };
  },
});

function tell(facts: CallFacts, candidate: Candidate, first: Candidate | undefined, attempts: number): void {
  facts.attempts = attempts;
  facts.upstream = candidate.upstream.name;
  facts.fallback = candidate !== first;
}

function stillFit(waiting: readonly Candidate[], failed: Candidate, decision: Decision & { do: 'next' }): Candidate[] {
  if (!decision.largerContextOnly) return [...waiting];
  return waiting.filter(({ model }) => model.context > failed.model.context);
}

function cancel(relay: Answer | undefined): void {
  if (relay?.kind === 'relay') relay.chunks.cancel();
}

/** What the caller is told when nobody answered. */
function errorOf(attempts: readonly Attempt[], last: Failure | undefined): GatewayError {
  const details = { attempts };
  if (attempts.every(({ status }) => status === 429)) {
    const retryAfterSeconds = last?.retryAfterMs === undefined ? undefined : Math.ceil(last.retryAfterMs / 1_000);
    return fail(
      'UPSTREAM_RATE_LIMITED',
      retryAfterSeconds === undefined ? { details } : { details, retryAfterSeconds },
    );
  }
  if (attempts.every(({ outcome }) => outcome === 'timeout')) return fail('UPSTREAM_TIMEOUT', { details });
  return fail('ALL_PROVIDERS_FAILED', { details });
}
