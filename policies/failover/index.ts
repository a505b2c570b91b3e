import type { Answer, Attempt } from '../../core/calls/call';
import { ABSENT_CALLS } from '../../core/calls/open-calls';
import { endingOfUnanswered } from '../../core/calls/unfinished';
import type { Candidate } from '../../core/catalog/catalog';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { definePolicy } from '../../core/gateway/policy';
import { AnswerRoom } from '../../core/http/buffered-bytes';
import { CLIENT_LEFT_STATUS, ClientLeft } from '../../core/http/client-left';
import { formatUsd } from '../../core/money';
import { DURATION, parseDuration } from '../../core/settings';
import { type AskingCall, type AttemptSettings, Attempts } from './attempts';
import { errorOfAll, type Failure } from './decide';
import { sendMirror } from './mirror';
import { RetryBudget } from './retry-budget';
import { type QueueSettings, UpstreamSlots } from './upstream-slots';

/** The retry budget of the process. All pipelines share it, because an outage concerns all of them. */
const BUDGET = new RetryBudget();
const SLOTS = new UpstreamSlots();

export default definePolicy({
  contract: 'policy/1',
  name: 'failover',
  summary: 'Which upstream answers? Waits for its first content; nothing is sent to the client yet.',
  schema: {
    type: 'object',
    properties: {
      maxAttempts: { description: 'Most attempts of one call.', type: 'integer', minimum: 1, maximum: 20, default: 4 },
      sameUpstreamRetries: {
        description: 'Retries of the last candidate if no other is left.',
        type: 'integer',
        minimum: 0,
        maximum: 10,
        default: 1,
      },
      relayLastError: {
        description: 'If no upstream answered, relays the error of the last one to the caller unchanged.',
        type: 'boolean',
        default: false,
      },
      queueWait: {
        ...DURATION,
        description: 'How long a call waits for an upstream that has `maxConcurrent` running calls.',
        default: '2s',
      },
      maxQueued: {
        description: 'Most calls that wait for such an upstream; accounts take turns.',
        type: 'integer',
        minimum: 0,
        default: 100,
      },
      preambleHold: {
        ...DURATION,
        description: "How long a stream's preamble is held back for its first content.",
        default: '15s',
      },
    },
  },
  needs: ['key', 'request', 'candidates', 'reservation', 'meter'],
  provides: ['answer'],
  boundsItself: true,
  prepare: ({ preambleHold, queueWait, relayLastError, ...bounds }, gateway) => {
    const [preambleHoldMs, queueWaitMs] = [parseDuration(preambleHold), parseDuration(queueWait)];
    const settings = { ...bounds, preambleHoldMs, queueWaitMs, relayLastError };
    return (call) => {
      BUDGET.noteCall();
      const { mirror, request } = call;
      if (mirror !== undefined) {
        call.onEnd(() => {
          // The gateway does not mirror a call whose client has left, because such a call has no whole answer to compare.
          if (!call.hasLeft) sendMirror(mirror, call, gateway, settings.preambleHoldMs);
        });
      }
      if (!request.stream) call.onLeave(() => countAbsent(call));
      openRoom(call);
      return answerOf(call, settings, gateway);
    };
  },
});

/** Opens the room of the answer. Once the client has left, the answer needs none: it is only read. */
function openRoom(call: AskingCall): void {
  const room = new AnswerRoom(call.key.accountId);
  call.room = room;
  const close = (): void => room.close();
  call.onLeave(close);
  call.onEnd(close);
}

/** Counts an unstreamed call whose client has left until the gateway has read it to its end. */
function countAbsent(call: AskingCall): void {
  if (call.leftAtMs !== undefined) call.onEnd(ABSENT_CALLS.enter(call.key.accountId));
}

interface FailoverSettings extends AttemptSettings, QueueSettings {
  readonly relayLastError: boolean;
}

/** Tries one candidate after the other, as `decide` says, until one answers. */
async function answerOf(
  call: AskingCall,
  settings: FailoverSettings,
  gateway: Gateway,
): Promise<{ readonly answer: Answer }> {
  const attempts = new Attempts(call, settings, gateway, BUDGET);
  const failures: Failure[] = [];
  /** The last failed attempt. While no candidate was tried, this is the first one passed over. */
  let failed: { readonly candidate: Candidate; readonly failure: Failure } | undefined;
  let candidate = attempts.take();
  while (candidate !== undefined && !call.hasLeft) {
    const slot = SLOTS.take(candidate.upstream, call, settings);
    const giveSlotBack = slot instanceof Promise ? await slot : slot;
    if (giveSlotBack === undefined) {
      candidate = attempts.take();
      continue;
    }
    call.meter.begin(candidate);
    const attempted = await attempts.ask(candidate, call.request).catch((error: unknown) => {
      giveSlotBack();
      attempts.relay?.chunks.cancel();
      throw error;
    });
    if ('answer' in attempted) {
      call.onEnd(giveSlotBack);
      const { answer } = attempted;
      const tookMs = Math.round(performance.now() - call.startedMs);
      if (answer.kind === 'body') call.facts.wholeMs = tookMs;
      if (answer.kind === 'stream') call.facts.firstTokenMs = tookMs;
      return { answer };
    }
    giveSlotBack();
    const { failure } = attempted;
    failures.push(failure);
    if (failed === undefined || failure.outcome !== 'not_translatable') failed = { candidate, failure };
    const decision = attempts.decide(failed.failure, failed.candidate);
    if (decision.do === 'relay' && attempts.relay !== undefined) return { answer: attempts.relay };
    if (decision.do === 'relay' || decision.do === 'give-up') break;
    candidate = await attempts.goOn(decision, failed.candidate);
  }
  if (failed?.failure.stillWorks) await chargeThought(call, failed.candidate, attempts.made, gateway);
  const { relay } = attempts;
  if (!call.hasLeft && relay !== undefined && isForTheCaller(failed?.failure, settings)) return { answer: relay };
  relay?.chunks.cancel();
  if (call.hasLeft) throw new ClientLeft();
  if (failures.length === 0)
    throw fail('OVERLOADED', {
      retryAfterSeconds: 1,
      message: 'Every upstream of this model has reached its `maxConcurrent` calls. Retry later.',
    });
  throw errorOfAll(attempts.made, failures);
}

/**
 * Charges the input of a call whose upstream thought for as long as the call's limit explains, and may still work.
 * @throws UPSTREAM_TIMEOUT if the client still waits
 */
async function chargeThought(
  call: AskingCall,
  candidate: Candidate,
  attempts: readonly Attempt[],
  { health }: Gateway,
): Promise<void> {
  call.facts.status = call.hasLeft ? CLIENT_LEFT_STATUS : 504;
  call.facts.errorCode = call.hasLeft ? 'CLIENT_LEFT' : 'UPSTREAM_TIMEOUT';
  const ending = endingOfUnanswered(call, candidate, performance.now(), health);
  const { chargedE8 } = await call.reservation.settle(ending);
  if (call.hasLeft) return;
  throw fail('UPSTREAM_TIMEOUT', {
    message: 'The upstream works for longer than the gateway waits. Its input was charged. Stream long answers.',
    details: { attempts },
    retryable: false,
    headers: { 'X-AI-Cost': formatUsd(chargedE8) },
  });
}

/** True if the last upstream's own error says more than that all candidates failed. */
function isForTheCaller(last: Failure | undefined, { relayLastError }: FailoverSettings): boolean {
  if (last === undefined) return false;
  if (relayLastError) return last.outcome === 'status' || last.outcome === 'error_event';
  return last.status === 404 || last.status === 409;
}
