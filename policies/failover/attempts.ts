import { setTimeout as sleep } from 'node:timers/promises';
import type { CallKey } from '../../core/accounts/identify';
import type { Answer, Attempt, Call, Meter, ModelRequest, Reservation } from '../../core/calls/call';
import { beginAttempt } from '../../core/calls/made-attempt';
import type { NewIds } from '../../core/calls/new-ids';
import { readOnMs } from '../../core/calls/read-on';
import type { AttemptTrace } from '../../core/calls/trace';
import { sessionHash } from '../../core/catalog/affinity';
import type { Candidate, Upstream } from '../../core/catalog/catalog';
import { NotTranslatable } from '../../core/catalog/conversation';
import { askedWith, keptTo } from '../../core/catalog/credential';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { chooseCredential, usableCredentials } from '../../core/health/choose-credential';
import { isAboutCredential, RATE_LIMITED } from '../../core/health/credential-gauge';
import type { TraceHeaders } from '../../core/traces/tracing';
import type { NotedEvent } from '../../core/wire/event-reader';
import { type Attempted, attempt, notTranslatable, translate } from './attempt';
import { type Decision, decide, type Failure, type Situation } from './decide';
import { noteMade } from './note-made';
import type { RetryBudget } from './retry-budget';
import type { AttemptingCall } from './send';

export interface AttemptSettings {
  /** Attempts in all. */
  readonly maxAttempts: number;
  readonly sameUpstreamRetries: number;
  readonly preambleHoldMs: number;
}

export type AskingCall = Pick<
  Call,
  | 'id'
  | 'facts'
  | 'hasLeft'
  | 'leftAtMs'
  | 'isOutOfMoney'
  | 'onLeave'
  | 'onCutOff'
  | 'left'
  | 'startedMs'
  | 'newIds'
  | 'upstreamSocket'
  | 'trace'
  | 'traceHeaders'
> & {
  readonly key: Pick<CallKey, 'accountId' | 'keyId'>;
  readonly request: Pick<ModelRequest, 'stream' | 'members' | 'session'>;
  readonly reservation: Pick<Reservation, 'onClientAbort'>;
  readonly candidates: readonly Candidate[];
  readonly meter: Meter;
};

/** Nothing is learned of an upstream whose client did not wait for it. */
const ABANDONED: Failure = { outcome: 'cancelled', status: undefined, verdict: 'next', retryAfterMs: undefined };

/**
 * A WebSocket that was answered stays where it was answered, for its earlier answers are known there alone. What a frame asks for without
 * an answer (`generate: false`) would be a whole answer, and billed, in a POST.
 * @throws NOT_SUPPORTED
 */
function reachable({ candidates, upstreamSocket, request }: AskingCall): readonly Candidate[] {
  if (upstreamSocket === undefined) return candidates;
  const there = candidates.flatMap((candidate) => {
    const { upstream } = candidate;
    const credential = upstreamSocket.credentialAt(upstream);
    if (credential === undefined || !upstreamSocket.isAt(askedWith(upstream, credential))) return [];
    return [{ ...candidate, upstream: keptTo(upstream, credential) }];
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

type RelayedAnswer = Answer & { readonly kind: 'relay' };

/** The attempts of one call: who was asked, what came of it, who is left. */
export class Attempts implements AttemptingCall {
  readonly made: Attempt[] = [];
  /** What the last one that was asked said, where the caller can be given it. */
  relay: RelayedAnswer | undefined;
  #waiting: readonly Candidate[];
  readonly #first: string | undefined;
  /** The credentials that were refused for this call, by upstream. */
  readonly #refused = new Map<string, Set<string>>();
  #retriesLeft: number;
  #askedAtMs = 0;
  /** The step to whom is asked now was free, for it had not failed lately. */
  #isOnTrust = false;
  /** Of the attempt under way, where it is sampled. */
  trace: AttemptTrace | undefined;
  /** The failure that was decided on last. */
  #decided: Failure | undefined;

  constructor(
    private readonly call: AskingCall,
    private readonly settings: AttemptSettings,
    private readonly gateway: Gateway,
    private readonly budget: RetryBudget,
  ) {
    this.#waiting = reachable(call);
    this.#first = this.#waiting[0]?.upstream.name;
    this.#retriesLeft = settings.sameUpstreamRetries;
  }

  get leftAtMs(): number | undefined {
    return this.call.leftAtMs;
  }

  get isOutOfMoney(): boolean {
    return this.call.isOutOfMoney;
  }

  get id(): string {
    return this.call.id;
  }

  get accountId(): string {
    return this.call.key.accountId;
  }

  get upstreamSocket(): AskingCall['upstreamSocket'] {
    return this.call.upstreamSocket;
  }

  get traceHeaders(): TraceHeaders | undefined {
    return this.trace?.headers ?? this.call.traceHeaders;
  }

  get newIds(): NewIds | undefined {
    return this.call.newIds;
  }

  onLeave(listener: () => void): () => void {
    return this.call.onLeave(listener);
  }

  onCutOff(listener: () => void): void {
    this.call.onCutOff(listener);
  }

  readOnMs(upstream: Upstream): number {
    return readOnMs(this.call.request, upstream, this.call.reservation);
  }

  /** The next candidate, no longer waiting, with the credential to ask it with; undefined when nobody is left. */
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
    const tried = this.#refused.get(upstream.name);
    const credential = chooseCredential(upstream, this.gateway.health, { session, tried });
    return { ...candidate, upstream: askedWith(upstream, credential) };
  }

  /** Asks one candidate and writes down how it went, wherever that is of interest. One that the call cannot be translated for is not asked. */
  async ask(candidate: Candidate, request: ModelRequest): Promise<Attempted> {
    const { call, gateway, made } = this;
    const upstream = candidate.upstream.name;
    this.#askedAtMs = performance.now();
    const translating = translate(candidate, request);
    const refusal = await translating.then(() => undefined, asRefusal);
    if (refusal !== undefined) return this.#passOver(upstream, refusal);
    this.relay?.chunks.cancel();
    this.relay = undefined;
    call.facts.attempts = made.length + 1;
    call.facts.upstream = upstream;
    call.facts.fallback = upstream !== this.#first;
    const making = beginAttempt(candidate, request.beginning === undefined ? 'failed' : 'continuation');
    call.facts.made.push(making);
    this.trace = call.trace?.begin(making, call.facts.made.length);
    const { preambleHoldMs } = this.settings;
    const sentMs = performance.now();
    const attempted = await attempt(candidate, request, gateway.egress, this, preambleHoldMs, translating);
    call.facts.waitedMs += performance.now() - sentMs;
    const ms = this.#msSinceAsked();
    noteMade(making, attempted, ms);
    if ('answer' in attempted) {
      if (attempted.answer.kind === 'abandoned') {
        gateway.health.failed(candidate, ABANDONED, ms);
        call.facts.routing.attempts.push({ upstream, outcome: 'cancelled', status: undefined, ms, why: undefined });
        return attempted;
      }
      gateway.health.answered(candidate, { ms, stream: request.stream });
      const { kind, status } = attempted.answer;
      if (kind === 'stream') this.trace?.noteStream(attempted.answer.head.find(hasData)?.event);
      call.facts.routing.attempts.push({ upstream, outcome: 'answered', status, ms, why: undefined });
      return attempted;
    }
    call.trace?.end(making);
    this.relay = attempted.relay;
    const { outcome, status } = attempted.failure;
    made.push({ upstream, outcome, status, ms });
    if (this.#isOnTrust) this.budget.spend();
    const refused = gateway.health.failed(candidate, attempted.failure, ms);
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

  /** Has an upstream that refused a credential asked with another one, before anybody else is. */
  #askAgainWithAnother(failed: Candidate, { outcome, status, verdict }: Failure): void {
    const { name, credential, credentials } = failed.upstream;
    if (credentials.length === 1 || outcome !== 'status' || verdict !== 'next' || !isAboutCredential(status)) return;
    const refused = this.#refused.get(name) ?? new Set();
    this.#refused.set(name, refused.add(credential.name));
    if (usableCredentials(failed.upstream, this.gateway.health, refused).length > 0)
      this.#waiting = [failed, ...this.#waiting];
  }

  /** What to do about a failure; who cannot do better does not wait any longer. It may be decided anew, when others were passed over since. */
  decide(failure: Failure, failed: Candidate): Decision {
    if (failure === this.#decided) return decide(failure, this.#situation());
    this.#decided = failure;
    if (failure.verdict === 'larger-context')
      this.#waiting = this.#waiting.filter(({ model }) => model.context > failed.model.context);
    this.#askAgainWithAnother(failed, failure);
    const decision = decide(failure, this.#situation());
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

  /** Nobody else is of use any more. */
  keepOnly(isOfUse: (candidate: Candidate) => boolean): void {
    this.#waiting = this.#waiting.filter(isOfUse);
  }

  /** What to do about an answer that was good at first. */
  broke(candidate: Candidate, failure: Failure): Decision {
    const { outcome, status } = failure;
    this.made.push({ upstream: candidate.upstream.name, outcome, status, ms: this.#msSinceAsked() });
    this.gateway.health.failed(candidate, failure);
    const broken = this.call.facts.made.at(-1);
    if (broken !== undefined) {
      broken.outcome = outcome;
      broken.usage = this.call.meter.attempted()?.usage;
      this.call.trace?.end(broken);
    }
    return this.decide(failure, candidate);
  }

  #msSinceAsked(): number {
    return Math.round(performance.now() - this.#askedAtMs);
  }

  /** Does what was decided about going on: the candidate to ask now, after a wait where one is due. */
  async goOn(decision: Decision & { readonly do: 'next' | 'retry' }, failed: Candidate): Promise<Candidate> {
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

  /** Puts candidates that may be asked without budget before the others, however those are ranked otherwise. */
  #freeFirst(): void {
    const healthy = this.#waiting.filter((each) => this.#isHealthy(each));
    const answering = this.#waiting.filter((each) => this.#mostlyAnswers(each));
    this.#waiting = [...new Set([...healthy, ...answering, ...this.#waiting])];
  }

  #isHealthy({ upstream }: Candidate): boolean {
    return !this.gateway.health.hasFailedRecently(upstream.name);
  }

  #mostlyAnswers({ upstream }: Candidate): boolean {
    return this.gateway.health.mostlyAnswers(upstream.name);
  }
}

/** A translation gives the client nothing for some events. */
function hasData({ event }: NotedEvent): boolean {
  return event.data !== undefined;
}

function asRefusal(error: unknown): NotTranslatable | undefined {
  return error instanceof NotTranslatable ? error : undefined;
}
