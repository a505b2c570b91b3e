import { setTimeout as sleep } from 'node:timers/promises';
import { fail, GatewayError } from '../../core/base/errors';
import type { Answer, Attempt, ModelRequest } from '../../core/calls/call';
import { type AttemptTrace, beginAttempt, type MadeAttempt } from '../../core/calls/made-attempt';
import { thinkingMs } from '../../core/calls/unfinished';
import { sessionHash } from '../../core/catalog/affinity';
import { type Candidate, isLast } from '../../core/catalog/catalog';
import { NotTranslatable } from '../../core/catalog/conversation';
import { askedWith, pinnedTo } from '../../core/catalog/upstream';
import type { Gateway } from '../../core/gateway/gateway';
import type { CallWith } from '../../core/gateway/policy';
import { chooseCredential, isAboutCredential, RATE_LIMITED, usableCredentials } from '../../core/health/credentials';
import type { FailedAttempt } from '../../core/health/health';
import { BUFFERED } from '../../core/http/buffered-bytes';
import type { NotedEvent } from '../../core/wire/event-reader';
import {
  type Attempted,
  type AttemptInput,
  attempt,
  noteMade,
  notTranslatable,
  type Translated,
  translate,
} from './attempt';
import { decideNext, type JudgedFailure, type RetryDecision, type Situation } from './decide';
import type { RetryBudget } from './retry-budget';

export interface AttemptSettings {
  readonly maxAttempts: number;
  readonly sameUpstreamRetries: number;
  readonly preambleHoldMs: number;
}

export type FailoverCall = CallWith<'key' | 'request' | 'candidates' | 'reservation' | 'meter'>;

/** The failure of an attempt whose client disconnected. It says nothing about the upstream. */
const ABANDONED: JudgedFailure = { outcome: 'cancelled', status: undefined, verdict: 'next', retryAfterMs: undefined };

/**
 * Returns the candidates that a call may try. A WebSocket that has received an answer stays at its upstream, because only that upstream
 * knows the earlier answers. A WebSocket frame with `generate: false` requests no answer, so it is never sent by POST. Over POST an
 * upstream would send a whole answer, and the customer would pay for it.
 * @throws NOT_SUPPORTED
 */
function reachable({ candidates, upstreamSocket, request }: FailoverCall): readonly Candidate[] {
  if (upstreamSocket === undefined) return candidates;
  const there = candidates.flatMap((candidate) => {
    const { upstream } = candidate;
    const credential = upstreamSocket.credentialAt(upstream);
    if (credential === undefined || !upstreamSocket.isAt(askedWith(upstream, credential))) return [];
    return [{ ...candidate, upstream: pinnedTo(upstream, credential) }];
  });
  if (there.length > 0) return there;
  if (request.members.get('generate') !== 'false') return candidates;
  const able = candidates.filter(({ upstream }) => upstream.webSocket);
  if (able.length > 0) return able;
  throw fail('NOT_SUPPORTED', {
    param: 'generate',
    status: 400,
    message: 'No upstream of this model accepts `generate: false`, which needs a WebSocket to the upstream.',
  });
}

type GiveBack = (() => void) | undefined;

const NOTHING: readonly string[] = [];

type RelayedAnswer = Answer & { readonly kind: 'relay' };

/** The attempts of one call: the candidates already tried, their results, and the remaining candidates. */
export class Attempts {
  readonly made: Attempt[] = [];
  /** The answer of the last upstream that was tried, if the gateway can relay it to the client. */
  relay: RelayedAnswer | undefined;
  #waiting: readonly Candidate[];
  readonly #first: string | undefined;
  /** The names of the credentials that upstreams refused for this call, by upstream. */
  #refused: Map<string, Set<string>> | undefined;
  #retriesLeft: number;
  #askedAtMs = 0;
  /** Whether the current candidate was tried without spending retry budget, because it had not failed recently. */
  #isOnTrust = false;
  /** The last failure that `decide` was called with. */
  #decided: JudgedFailure | undefined;

  constructor(
    private readonly call: FailoverCall,
    private readonly settings: AttemptSettings,
    private readonly gateway: Gateway,
    private readonly budget: RetryBudget,
  ) {
    this.#waiting = reachable(call);
    this.#first = this.#waiting[0]?.upstream.name;
    this.#retriesLeft = settings.sameUpstreamRetries;
  }

  /** Removes the next candidate from the list and returns it with the credential to use; undefined if none is left. */
  take(): Candidate | undefined {
    const [first] = this.#waiting;
    this.#waiting = this.#waiting.slice(1);
    return first && this.#withCredential(first);
  }

  #withCredential(candidate: Candidate): Candidate {
    const { upstream } = candidate;
    if (upstream.credentials.length === 1) return candidate;
    const { key, request } = this.call;
    const session = request.session === undefined ? undefined : sessionHash(key, request.session);
    const tried = this.#refused?.get(upstream.name);
    const credential = chooseCredential(upstream, this.gateway.health, { session, tried });
    return { ...candidate, upstream: askedWith(upstream, credential) };
  }

  /**
   * Tries one candidate and records the result in the usage record, health and trace. Skips a candidate whose dialect cannot express the
   * call. Resolves with the value that `then` returns for the result.
   */
  ask<T>(candidate: Candidate, request: ModelRequest, then: (attempted: Attempted) => T | Promise<T>): Promise<T> {
    this.#askedAtMs = performance.now();
    if (candidate.dialect === undefined) return this.#send(candidate, request, undefined, undefined, then);
    // The translated body stays in memory until the attempt fails or the call ends.
    let giveBack: GiveBack;
    const room = BUFFERED.open({ accountId: this.call.key.accountId, onEnd: (work) => (giveBack = work) });
    return Promise.resolve(translate(candidate, request, room)).then((translated) => {
      // If there is no memory for the body, no upstream is at fault, so this error ends the call. Any other error is a failed attempt.
      if (translated instanceof GatewayError) throw translated;
      if (translated instanceof NotTranslatable) return then(this.#passOver(candidate.upstream.name, translated));
      return this.#send(candidate, request, translated, giveBack, then);
    });
  }

  #send<T>(
    candidate: Candidate,
    request: ModelRequest,
    translated: Translated,
    giveBack: GiveBack,
    then: (attempted: Attempted) => T | Promise<T>,
  ): Promise<T> {
    const { call, gateway, made } = this;
    const upstream = candidate.upstream.name;
    call.facts.weakened = translated === undefined || translated instanceof Error ? NOTHING : translated.weakened;
    this.relay?.chunks.cancel();
    this.relay = undefined;
    call.facts.attempts = made.length + 1;
    call.facts.upstream = upstream;
    call.facts.fallback = upstream !== this.#first;
    const { markup } = call.key.settings;
    const price = markup === undefined ? undefined : gateway.catalog.customerPrices.priceOf(markup)(candidate.model);
    const making = beginAttempt(candidate, 'failed', price);
    call.facts.made.push(making);
    const input: AttemptInput = {
      egress: gateway.egress,
      trace: call.trace?.begin(making, call.facts.made.length),
      preambleHoldMs: this.settings.preambleHoldMs,
      translated,
      thinkingMs: thinkingMs(request, candidate, gateway.health),
    };
    const sentMs = performance.now();
    return new Promise((resolve, reject) =>
      attempt(candidate, request, call, input, (attempted) => {
        try {
          call.facts.waitedMs += performance.now() - sentMs;
          resolve(then(this.#note(candidate, request, making, attempted, input.trace, giveBack)));
        } catch (error) {
          reject(error);
        }
      }),
    );
  }

  /** Records the result of an attempt. */
  #note(
    candidate: Candidate,
    request: ModelRequest,
    making: MadeAttempt,
    attempted: Attempted,
    trace: AttemptTrace | undefined,
    giveBack: GiveBack,
  ): Attempted {
    const { call, gateway, made } = this;
    const upstream = candidate.upstream.name;
    const ms = this.#msSinceAsked();
    noteMade(making, attempted, ms);
    if ('answer' in attempted) {
      if (giveBack !== undefined) call.onEnd(giveBack);
      if (attempted.answer.kind === 'abandoned') {
        gateway.health.failed(candidate, ABANDONED, this.#failedAttempt(candidate, ABANDONED, ms));
        call.facts.routing.attempts.push({ upstream, outcome: 'cancelled', status: undefined, ms, why: undefined });
        return attempted;
      }
      gateway.health.answered(candidate, { accountId: call.key.accountId, ms, stream: request.stream });
      const { kind, status } = attempted.answer;
      if (kind === 'stream') trace?.noteStream(attempted.answer.head.find(hasData)?.event);
      call.facts.routing.attempts.push({ upstream, outcome: 'answered', status, ms, why: undefined });
      return attempted;
    }
    giveBack?.();
    call.trace?.end(making);
    this.relay = attempted.relay;
    const { failure } = attempted;
    const { outcome, status } = failure;
    made.push({ upstream, outcome, status, ms });
    if (this.#isOnTrust) this.budget.spend();
    const refused = gateway.health.failed(candidate, failure, this.#failedAttempt(candidate, failure, ms));
    if (refused?.status === RATE_LIMITED)
      gateway.log.info({ upstream, ...refused }, 'an upstream rate limits one of its credentials');
    else if (refused !== undefined)
      gateway.log.warn({ upstream, ...refused }, 'an upstream rejects one of its credentials; check its key');
    return attempted;
  }

  #passOver(upstream: string, refusal: NotTranslatable): Attempted {
    const failure = notTranslatable(refusal);
    const { outcome, status } = failure;
    const why = refusal.message;
    this.call.facts.routing.attempts.push({ upstream, outcome, status, ms: this.#msSinceAsked(), why });
    this.gateway.log.debug({ requestId: this.call.id, upstream, why }, 'an upstream was skipped');
    return { failure, relay: undefined };
  }

  /** Puts an upstream that refused a credential back to the front if it has another usable credential. */
  #askAgainWithAnother(failed: Candidate, { outcome, status, verdict }: JudgedFailure): void {
    const { name, credential, credentials } = failed.upstream;
    if (credentials.length === 1 || outcome !== 'status' || verdict !== 'next' || !isAboutCredential(status)) return;
    this.#refused ??= new Map();
    const refused = this.#refused.get(name) ?? new Set();
    this.#refused.set(name, refused.add(credential.name));
    if (usableCredentials(failed.upstream, this.gateway.health, refused).length > 0)
      this.#waiting = [failed, ...this.#waiting];
  }

  /**
   * Decides what to do after a failure and drops candidates that cannot do better. If the gateway then skips candidates, it calls this
   * method again for the same failure.
   */
  decide(failure: JudgedFailure, failed: Candidate): RetryDecision {
    if (failure === this.#decided) return decideNext(failure, this.#situation());
    this.#decided = failure;
    if (failure.verdict === 'larger-context')
      this.#waiting = this.#waiting.filter(({ model }) => model.context > failed.model.context);
    this.#askAgainWithAnother(failed, failure);
    const decision = decideNext(failure, this.#situation());
    const last = this.made.at(-1);
    if (last === undefined) return decision;
    this.call.facts.routing.attempts.push({ ...last, why: decision.why });
    const credential = failed.upstream.credential.name;
    this.gateway.log.debug(
      { requestId: this.call.id, ...last, credential, ...decision },
      'an attempt at an upstream failed',
    );
    return decision;
  }

  #failedAttempt(candidate: Candidate, { outcome, isDial }: JudgedFailure, ms: number): FailedAttempt {
    const { call, gateway } = this;
    const isExplained =
      outcome === 'timeout' && isDial !== true && thinkingMs(call.request, candidate, gateway.health) !== undefined;
    return { accountId: call.key.accountId, ms, mayEject: call.facts.strategy !== 'direct' && !isExplained };
  }

  #msSinceAsked(): number {
    return Math.round(performance.now() - this.#askedAtMs);
  }

  /** Carries out a decision to try again. Returns the candidate to try, after a wait if the decision requires one. */
  async nextCandidate(
    decision: RetryDecision & { readonly do: 'next' | 'retry' },
    failed: Candidate,
  ): Promise<Candidate> {
    this.#isOnTrust = decision.do === 'next' && !decision.spends;
    if (decision.do === 'next') {
      if (decision.spends) this.budget.spend();
      return this.take() ?? failed;
    }
    this.budget.spend();
    this.#retriesLeft -= 1;
    const withJitterMs = decision.afterMs * (1 + Math.random() / 4);
    await sleep(withJitterMs, undefined, { signal: this.call.left }).catch(() => undefined);
    return this.#withCredential(failed);
  }

  #situation(): Situation {
    const budgetLeft = this.budget.isLeft;
    if (!budgetLeft) this.#freeFirst();
    const [next] = this.#waiting;
    return {
      attemptsLeft: this.settings.maxAttempts - this.made.length,
      candidatesLeft: this.#waiting.length,
      isNextHealthy: next !== undefined && this.#isHealthy(next),
      doesNextMostlyAnswer: next !== undefined && this.#mostlyAnswers(next),
      retriesLeft: this.#retriesLeft,
      budgetLeft,
    };
  }

  /** Moves candidates that cost no retry budget to the front. Translated candidates still come after native ones. */
  #freeFirst(): void {
    const healthy = this.#waiting.filter((each) => this.#isHealthy(each));
    const answering = this.#waiting.filter((each) => this.#mostlyAnswers(each));
    const free = [...healthy, ...answering];
    this.#waiting = [...new Set([...free.filter((each) => !isLast(each)), ...free, ...this.#waiting])];
  }

  #isHealthy({ upstream }: Candidate): boolean {
    return !this.gateway.health.hasFailedRecently(upstream.name);
  }

  #mostlyAnswers({ upstream }: Candidate): boolean {
    return this.gateway.health.mostlyAnswers(upstream.name);
  }
}

/** Returns whether the client receives bytes for this event. A translation drops some events. */
function hasData({ event }: NotedEvent): boolean {
  return event.data !== undefined;
}
