import { fail } from '../../core/base/errors';
import { formatUsd } from '../../core/base/money';
import { duration, flag, integer } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import type { Answer, Attempt, CallFields } from '../../core/calls/call';
import { DETACHED_CALLS } from '../../core/calls/open-calls';
import { endingOfUnanswered } from '../../core/calls/unfinished';
import type { Candidate } from '../../core/catalog/catalog';
import { declaredFacts, regionText } from '../../core/catalog/facts';
import type { Gateway } from '../../core/gateway/gateway';
import { definePolicy } from '../../core/gateway/policy';
import { AnswerRoom } from '../../core/http/buffered-bytes';
import { CLIENT_LEFT_STATUS, ClientLeft } from '../../core/http/client-left';
import { type AttemptSettings, Attempts, type FailoverCall } from './attempts';
import { errorOfAll, type JudgedFailure } from './decide';
import { sendMirror } from './mirror';
import { RetryBudget } from './retry-budget';
import { type QueueSettings, UpstreamSlots } from './upstream-slots';

/** The budget of the process for further attempts. All pipelines share it, because an outage concerns all of them. */
const BUDGET = new RetryBudget();
const SLOTS = new UpstreamSlots();

export default definePolicy({
  contract: 'policy/1',
  name: 'failover',
  summary: 'Which upstream answers? Waits for its first content; nothing is sent to the client yet.',
  schema: {
    type: 'object',
    properties: {
      maxAttempts: integer('Most attempts of one call.', { minimum: 1, maximum: 20, default: 4 }),
      sameUpstreamRetries: integer('Retries of the last candidate if no other is left.', {
        minimum: 0,
        maximum: 10,
        default: 1,
      }),
      relayLastError: flag('If no upstream answered, relays the error of the last one to the caller unchanged.', {
        default: false,
      }),
      queueWait: duration('How long a call waits for an upstream that has `maxConcurrent` running calls.', {
        default: '2s',
      }),
      maxQueued: integer('Most calls that wait for such an upstream; accounts take turns.', {
        minimum: 0,
        default: 100,
      }),
      preambleHold: duration("How long a stream's preamble is held back for its first content.", { default: '15s' }),
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
          // The gateway does not mirror a call whose client has disconnected, because such a call has no whole answer to compare.
          if (!call.hasLeft) sendMirror(mirror, call, gateway, settings.preambleHoldMs);
        });
      }
      if (!request.stream) call.onLeave(() => countDetached(call));
      openRoom(call);
      return new CandidatesInTurn(call, settings, gateway).answer();
    };
  },
});

/** Reserves memory for the answer. Once the client has disconnected, the answer needs none, because the gateway only counts it. */
function openRoom(call: FailoverCall): void {
  const room = new AnswerRoom(call.key.accountId);
  call.room = room;
  const close = (): void => room.close();
  call.onLeave(close);
  call.onEnd(close);
}

/** Counts an unstreamed call whose client has disconnected, until the call ends. */
function countDetached(call: FailoverCall): void {
  if (call.leftAtMs !== undefined) call.onEnd(DETACHED_CALLS.enter(call.key.accountId));
}

interface FailoverSettings extends AttemptSettings, QueueSettings {
  readonly relayLastError: boolean;
}

type Answered = Pick<CallFields, 'answer'>;

/** Tries the candidates one after the other, as `decide` says, until one answers. */
class CandidatesInTurn {
  readonly #attempts: Attempts;
  readonly #failures: JudgedFailure[] = [];
  /** The last failed attempt. Until the gateway has tried a candidate, this is the first candidate that it skipped. */
  #failed: { readonly candidate: Candidate; readonly failure: JudgedFailure } | undefined;

  constructor(
    private readonly call: FailoverCall,
    private readonly settings: FailoverSettings,
    private readonly gateway: Gateway,
  ) {
    this.#attempts = new Attempts(call, settings, gateway, BUDGET);
    call.onEnd(() => this.#attempts.relay?.chunks.cancel());
  }

  /** Returns the answer. @throws GatewayError if no candidate answers, ClientLeft if the client has disconnected */
  answer(): Promise<Answered> {
    return this.#take(this.#attempts.take());
  }

  #take(candidate: Candidate | undefined): Promise<Answered> {
    if (candidate === undefined || this.call.hasLeft) return this.#giveUp();
    const slot = SLOTS.take(candidate.upstream, this.call, this.settings);
    return slot instanceof Promise ? slot.then((given) => this.#ask(candidate, given)) : this.#ask(candidate, slot);
  }

  #ask(candidate: Candidate, giveSlotBack: (() => void) | undefined): Promise<Answered> {
    const { call } = this;
    const attempts = this.#attempts;
    if (giveSlotBack === undefined) return this.#take(attempts.take());
    call.meter.begin(candidate);
    call.onEnd(giveSlotBack);
    return attempts.ask(candidate, call.request, (attempted) => {
      if ('answer' in attempted) return this.#answered(attempted.answer);
      giveSlotBack();
      return this.#continueAfter(candidate, attempted.failure);
    });
  }

  #answered(answer: Answer): Answered {
    const { call } = this;
    const tookMs = Math.round(performance.now() - call.startedMs);
    if (answer.kind === 'body') call.facts.wholeMs = tookMs;
    if (answer.kind === 'stream') call.facts.firstTokenMs = tookMs;
    return answer.kind === 'abandoned' ? { answer } : this.#from(answer);
  }

  /** Returns the answer of an upstream, and notes the region that is declared of it. */
  #from(answer: Answer): Answered {
    this.call.facts.region = regionText(declaredFacts(answer.candidate.model));
    return { answer };
  }

  async #continueAfter(candidate: Candidate, failure: JudgedFailure): Promise<Answered> {
    const attempts = this.#attempts;
    this.#failures.push(failure);
    if (this.#failed === undefined || failure.outcome !== 'not_translatable') this.#failed = { candidate, failure };
    const failed = this.#failed;
    const decision = attempts.decide(failed.failure, failed.candidate);
    if (decision.do === 'relay' && attempts.relay !== undefined) return this.#from(attempts.relay);
    if (decision.do === 'relay' || decision.do === 'give-up') return this.#giveUp();
    return this.#take(await attempts.nextCandidate(decision, failed.candidate));
  }

  async #giveUp(): Promise<Answered> {
    const { call, settings, gateway } = this;
    const { made, relay } = this.#attempts;
    const failed = this.#failed;
    if (failed?.failure.stillWorks) await chargeThought(call, failed.candidate, made, gateway);
    if (!call.hasLeft && relay !== undefined && isForTheCaller(failed?.failure, settings)) return this.#from(relay);
    relay?.chunks.cancel();
    if (call.hasLeft) throw new ClientLeft();
    if (this.#failures.length > 0) throw errorOfAll(made, this.#failures);
    throw fail('OVERLOADED', {
      retryAfterSeconds: 1,
      message: 'Every upstream of this model has reached its `maxConcurrent` calls. Retry later.',
    });
  }
}

/**
 * Charges the input of a call that timed out. The upstream may still work on the answer, because the call's output limit allowed a long
 * silence.
 * @throws UPSTREAM_TIMEOUT if the client still waits
 */
async function chargeThought(
  call: FailoverCall,
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
    message:
      'The upstream needs longer than the gateway waits. The input of the call was charged. Stream long answers.',
    details: { attempts },
    retryable: false,
    headers: { 'X-AI-Cost': formatUsd(chargedE8) },
  });
}

/** Returns whether the last upstream's own error is more useful to the client than the general error. */
function isForTheCaller(last: JudgedFailure | undefined, { relayLastError }: FailoverSettings): boolean {
  if (last === undefined) return false;
  if (relayLastError) return last.outcome === 'status' || last.outcome === 'error_event';
  return last.status === 404 || last.status === 409;
}
