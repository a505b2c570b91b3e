import { getOrInsert } from '../base/collections';
import type { AttemptOutcome } from '../wire/dial-failure';
import { CredentialGauge } from './credentials';
import { Ejection, type EjectionRules, type EjectionState } from './ejection';

/**
 * The kinds of answers. Their latencies are never compared: that of an unstreamed answer depends on its length, that of a stream is its
 * time to the first token.
 */
export type AnswerKind = 'stream' | 'whole';

export function answerKindOf({ stream }: { readonly stream: boolean }): AnswerKind {
  return stream ? 'stream' : 'whole';
}

/** The facts about a candidate (a model at an upstream) that a routing strategy may use. */
export interface CandidateFacts {
  /** The expected milliseconds to the first content of a stream, or to the end of an unstreamed answer; undefined while unknown. */
  readonly latencyMs: number | undefined;
  /** How far a single answer differs from `latencyMs` on average; 0 while unknown. */
  readonly latencyDeviationMs: number;
  /** The share of attempts that failed, 0 to 1. It decays while the candidate gets no attempts. */
  readonly failureRate: number;
  /** Whether nothing is known of the candidate (or nothing since its ejection), and no call is trying it. */
  readonly isUntried: boolean;
  /** Whether nothing is known of the candidate, but a call is trying it. */
  readonly isBeingTried: boolean;
  /** The share of input tokens that recent calls read from the candidate's prompt cache, 0 to 1; undefined while unknown. */
  readonly cacheReadShare: number | undefined;
  /** The share of input tokens that calls of sessions read from the cache; 1 while unknown. It changes slowly, over many calls. */
  readonly sessionReadShare: number;
}

/** Weights of the newest observation in moving averages: the failure rate spans about ten attempts, a latency about five. */
const FAILURE_WEIGHT = 0.1;
const LATENCY_WEIGHT = 0.2;
const CACHE_WEIGHT = 0.05;
const SPEED_WEIGHT = 0.05;

/** The output tokens per second assumed for a model until one of its streams has been measured. */
const USUAL_TOKENS_PER_SECOND = 50;
/** The shortest stream, in milliseconds, from which the speed is measured. */
const MEASURED_FROM_MS = 1_000;

/** After this time without attempts, the failure rate has decayed to half. */
const FORGIVEN_HALF_MS = 15_000;
const LATENCY_HALF_LIFE_MS = 60_000;

/** The time limit after a call tries a candidate of unknown latency. Until it ends, other calls do not count the candidate as untried. */
const MAX_TRIED_MS = 10_000;

/** How long after a failure an upstream counts as likely to fail, unless it answers meanwhile. */
const RECENT_MS = 30_000;
const DOUBTFUL_FAILURE_RATE = 0.1;
const MOSTLY_FAILING_RATE = 0.5;

type Latencies = Readonly<Record<AnswerKind, MovingEstimate>>;

function newLatencies(): Latencies {
  return {
    stream: new MovingEstimate(LATENCY_WEIGHT, LATENCY_HALF_LIFE_MS),
    whole: new MovingEstimate(LATENCY_WEIGHT, LATENCY_HALF_LIFE_MS),
  };
}

/** What this process knows of one upstream, regardless of the model. */
export class UpstreamGauge {
  readonly ejection: Ejection;
  readonly latencies = newLatencies();
  readonly models = new Map<string, ModelGauge>();
  readonly credentials = new Map<string, CredentialGauge>();
  /** The end of the rest that the upstream requested by `Retry-After`. Until then, routing prefers other upstreams. */
  restsUntilMs = 0;
  /** Whether an operator has disabled the upstream and no operator has enabled it since. */
  isDisabledByOperator = false;
  answers = 0;
  readonly failures = new Map<AttemptOutcome, number>();
  lastFailureMs = Number.NEGATIVE_INFINITY;
  readonly #failing = new MovingEstimate(FAILURE_WEIGHT);

  constructor(
    readonly name: string,
    rules: EjectionRules,
  ) {
    this.ejection = new Ejection(rules);
  }

  model(name: string): ModelGauge {
    let gauge = this.models.get(name);
    if (gauge === undefined) {
      gauge = new ModelGauge(this);
      this.models.set(name, gauge);
    }
    return gauge;
  }

  credential(name: string): CredentialGauge {
    return getOrInsert(this.credentials, name, newCredential);
  }

  noteOutcomes(failureShare: number, nowMs: number, times = 1): void {
    // The stored failure rate does not include the decay since its last update. The decay is applied before the new failure is added.
    this.#failing.value = this.failureRate(nowMs);
    this.#failing.note(failureShare, nowMs, times);
  }

  failureRate(nowMs: number): number {
    const { value, at } = this.#failing;
    return value === undefined || value === 0 ? 0 : value * halved(nowMs - at, FORGIVEN_HALF_MS);
  }

  hasFailedRecently(nowMs: number): boolean {
    if (this.ejection.consecutiveFailures > 0 && nowMs - this.lastFailureMs < RECENT_MS) return true;
    return this.failureRate(nowMs) >= DOUBTFUL_FAILURE_RATE;
  }

  /** Returns whether the upstream is not ejected and answered most of its last attempts. A single failure does not make this false. */
  mostlyAnswers(nowMs: number): boolean {
    return this.ejection.state(nowMs) === 'in' && this.failureRate(nowMs) < MOSTLY_FAILING_RATE;
  }

  /** Enables the upstream, ends its ejection and the rests of its credentials, and discards its recorded failures and latencies. */
  restore(): void {
    this.isDisabledByOperator = false;
    this.ejection.restore();
    for (const each of this.credentials.values()) each.restore();
    this.beginAnew();
  }

  /** Discards failures and latencies, because observations from before an ejection do not describe the current state. */
  beginAnew(): void {
    this.#failing.forget();
    this.restsUntilMs = 0;
    for (const latencies of [this.latencies, ...[...this.models.values()].map((model) => model.latencies)]) {
      latencies.stream.forget();
      latencies.whole.forget();
    }
  }
}

/**
 * What this process knows of one model at one upstream. `look` refreshes the facts, which are fields of this object, so that ranking fifty
 * candidates allocates nothing.
 */
export class ModelGauge implements CandidateFacts {
  readonly latencies = newLatencies();
  readonly cacheReads = new MovingEstimate(CACHE_WEIGHT);
  /** The share of input read from caches starts at 1. The first calls cannot find anything in a cache, and this must not count against the upstream. */
  readonly sessionReads = new MovingEstimate(CACHE_WEIGHT, Number.POSITIVE_INFINITY, 1);

  readonly #tokensPerSecond = new MovingEstimate(SPEED_WEIGHT);

  latencyMs: number | undefined;
  latencyDeviationMs = 0;
  failureRate = 0;
  isUntried = true;
  isBeingTried = false;
  state: EjectionState = 'in';
  isResting = false;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(readonly upstream: UpstreamGauge) {}

  /** The mean output tokens per second of this model's streams, including reasoning tokens that the client does not see. */
  get tokensPerSecond(): number {
    return this.#tokensPerSecond.value ?? USUAL_TOKENS_PER_SECOND;
  }

  /** Records that a stream took `ms` milliseconds for its output tokens. */
  noteSpeed(outputTokens: number, ms: number, nowMs: number): void {
    if (ms >= MEASURED_FROM_MS) this.#tokensPerSecond.note((outputTokens * 1_000) / ms, nowMs);
  }

  get cacheReadShare(): number | undefined {
    return this.cacheReads.value;
  }

  get sessionReadShare(): number {
    return this.sessionReads.value ?? 1;
  }

  /** Whether calls may try this candidate: its upstream is not ejected, or is due for a probe. */
  get mayBeAsked(): boolean {
    return this.state === 'in' || this.state === 'due';
  }

  look(kind: AnswerKind, nowMs: number): void {
    const { upstream } = this;
    const estimate = this.#estimate(kind);
    this.state = upstream.ejection.state(nowMs);
    this.failureRate = upstream.failureRate(nowMs);
    this.isResting = nowMs < upstream.restsUntilMs;
    this.latencyMs = this.state === 'due' ? undefined : estimate.value;
    this.latencyDeviationMs = this.state === 'due' ? 0 : estimate.deviation;
    const isUnknown = this.latencyMs === undefined;
    this.isBeingTried = isUnknown && nowMs - this.#askedMs < MAX_TRIED_MS && this.#askedMs > estimate.at;
    this.isUntried = isUnknown && !this.isBeingTried;
    if (this.state === 'due') this.failureRate = 0;
  }

  /** Returns how many milliseconds ago the candidate last answered or was last tried. */
  silentMs(kind: AnswerKind, nowMs: number): number {
    return nowMs - Math.max(this.#estimate(kind).at, this.#askedMs);
  }

  #estimate(kind: AnswerKind): MovingEstimate {
    const own = this.latencies[kind];
    return own.value === undefined ? this.upstream.latencies[kind] : own;
  }

  /** Records that a call tries the candidate to learn its latency. Returns a function that removes this record. */
  ask(nowMs: number): () => void {
    this.#askedMs = nowMs;
    return () => {
      if (this.#askedMs === nowMs) this.#askedMs = Number.NEGATIVE_INFINITY;
    };
  }
}

function newCredential(name: string): CredentialGauge {
  return new CredentialGauge(name);
}

/** A moving average. The newest observation has the share `weight`, or more after a pause: at least half after a pause of one half-life. */
export class MovingEstimate {
  value: number | undefined;
  /** The mean distance between an observation and `value`. It starts as the whole first observation, because one observation may be pure chance. */
  deviation = 0;
  at = Number.NEGATIVE_INFINITY;
  readonly #halfLifeMs: number;

  /** @param first the value before the first observation */
  constructor(
    private readonly weight: number,
    halfLifeMs = Number.POSITIVE_INFINITY,
    first?: number,
  ) {
    this.#halfLifeMs = halfLifeMs;
    this.value = first;
  }

  /** Adds `times` observations whose mean is `observed`. */
  note(observed: number, nowMs: number, times = 1): void {
    const { value, at } = this;
    this.at = nowMs;
    if (value === undefined) {
      this.value = observed;
      this.deviation = observed;
      return;
    }
    const forgotten = 1 - halved(nowMs - at, this.#halfLifeMs);
    const weight = Math.max(1 - (1 - this.weight) ** times, forgotten);
    this.deviation += (Math.abs(observed - value) - this.deviation) * this.weight;
    this.value = value + (observed - value) * weight;
  }

  forget(): void {
    this.value = undefined;
    this.deviation = 0;
    this.at = Number.NEGATIVE_INFINITY;
  }
}

/** Returns the share of a value, from 1 down to 0, that remains after `elapsedMs` of exponential decay. */
export function halved(elapsedMs: number, halfLifeMs: number): number {
  return elapsedMs <= 0 || halfLifeMs === Number.POSITIVE_INFINITY ? 1 : 2 ** (-elapsedMs / halfLifeMs);
}
