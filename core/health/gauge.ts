import type { AttemptOutcome } from '../wire/dial-failure';
import { CredentialGauge } from './credential-gauge';
import { Ejection, type EjectionRules, type EjectionState } from './ejection';
import { halved, MovingEstimate } from './moving-estimate';

/** Whole answers take as long as they are; only streams say how long the first token takes. They are never compared. */
export type AnswerKind = 'stream' | 'whole';

export function kindOf({ stream }: { readonly stream: boolean }): AnswerKind {
  return stream ? 'stream' : 'whole';
}

/** What a strategy may know of a candidate. */
export interface CandidateFacts {
  /** Expected milliseconds to the first content of a stream, or to the end of a whole answer; undefined while unknown. */
  readonly latencyMs: number | undefined;
  /** How far a single answer is from that, on average; 0 while unknown. */
  readonly latencyDeviationMs: number;
  /** Share of attempts that failed, 0 to 1. Silence forgives. */
  readonly failureRate: number;
  /** Nothing is known of it, or nothing since it was ejected, and nobody is finding out just now. */
  readonly isUntried: boolean;
  /** Nothing is known of it, but a call is under way that will tell. */
  readonly isBeingTried: boolean;
  /** Share of the input tokens it read from its cache lately, 0 to 1; undefined while unknown. */
  readonly cacheReadShare: number | undefined;
  /** The same of calls of sessions; 1 while unknown, and believed only after many of them. */
  readonly sessionReadShare: number;
}

/** The weight of the newest observation: about ten attempts are remembered of failures, five of latencies. */
const FAILURE_WEIGHT = 0.1;
const LATENCY_WEIGHT = 0.2;
const CACHE_WEIGHT = 0.05;
const SPEED_WEIGHT = 0.05;

/** What is taken for the speed of a model while no stream of it was measured. */
const USUAL_TOKENS_PER_SECOND = 50;
/** A shorter stream says little of the speed. */
const MEASURED_FROM_MS = 1_000;

/** After so long without an attempt half of what was known against an upstream is forgiven. */
const FORGIVEN_HALF_MS = 15_000;
const LATENCY_HALF_LIFE_MS = 60_000;

/** Somebody who was asked and has not been heard of for so long is asked by another call. */
const TRIED_AT_MOST_MS = 10_000;

/** So long a failure that was not followed by an answer makes an upstream a doubtful choice. */
const RECENT_MS = 30_000;
const DOUBTFUL_FAILURE_RATE = 0.1;
const MOSTLY_FAILING_RATE = 0.5;

export type Latencies = Readonly<Record<AnswerKind, MovingEstimate>>;

function newLatencies(): Latencies {
  return {
    stream: new MovingEstimate(LATENCY_WEIGHT, LATENCY_HALF_LIFE_MS),
    whole: new MovingEstimate(LATENCY_WEIGHT, LATENCY_HALF_LIFE_MS),
  };
}

/** What is known of one upstream, whatever the model. */
export class UpstreamGauge {
  readonly ejection: Ejection;
  readonly latencies = newLatencies();
  /** By the upstream's own names. */
  readonly models = new Map<string, ModelGauge>();
  /** By their names. */
  readonly credentials = new Map<string, CredentialGauge>();
  /** Not asked first before then: it said so itself (`Retry-After`). */
  restsUntilMs = 0;
  /** An operator has taken it out, until an operator brings it back. */
  isDisabledByOperator = false;
  answers = 0;
  /** By how they ended. */
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
    let known = this.models.get(name);
    if (known === undefined) {
      known = new ModelGauge(this);
      this.models.set(name, known);
    }
    return known;
  }

  credential(name: string): CredentialGauge {
    let known = this.credentials.get(name);
    if (known === undefined) {
      known = new CredentialGauge(name);
      this.credentials.set(name, known);
    }
    return known;
  }

  noteOutcomes(failureShare: number, nowMs: number, times = 1): void {
    // What is forgiven already is not brought back by the next failure.
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

  /** It is not ejected, and answered most of its last attempts: a single failure does not make it a bad choice. */
  mostlyAnswers(nowMs: number): boolean {
    return this.ejection.state(nowMs) === 'in' && this.failureRate(nowMs) < MOSTLY_FAILING_RATE;
  }

  /** Asked again as if nothing had been. */
  restore(): void {
    this.isDisabledByOperator = false;
    this.ejection.restore();
    for (const each of this.credentials.values()) each.restore();
    this.beginAnew();
  }

  /** It is asked again: what was known of it before says nothing about now. */
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
 * What is known of one model at one upstream. `look` brings the facts up to the moment; they are fields of this object, so
 * that ranking fifty candidates allocates nothing.
 */
export class ModelGauge implements CandidateFacts {
  readonly latencies = newLatencies();
  readonly cacheReads = new MovingEstimate(CACHE_WEIGHT);
  /** Begins at 1: a first call reads nothing anywhere, and must not speak against the upstream. */
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

  /** Mean output tokens per second of its streams, reasoning that is not shown included. */
  get tokensPerSecond(): number {
    return this.#tokensPerSecond.value ?? USUAL_TOKENS_PER_SECOND;
  }

  /** A stream has taken so long for so many output tokens. */
  noteSpeed(outputTokens: number, ms: number, nowMs: number): void {
    if (ms >= MEASURED_FROM_MS) this.#tokensPerSecond.note((outputTokens * 1_000) / ms, nowMs);
  }

  get cacheReadShare(): number | undefined {
    return this.cacheReads.value;
  }

  get sessionReadShare(): number {
    return this.sessionReads.value ?? 1;
  }

  /** Neither the operator nor its own failures keep it from being asked. */
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
    this.isBeingTried = isUnknown && nowMs - this.#askedMs < TRIED_AT_MOST_MS && this.#askedMs > estimate.at;
    this.isUntried = isUnknown && !this.isBeingTried;
    if (this.state === 'due') this.failureRate = 0;
  }

  /** Since anything was seen or asked of it. */
  silentMs(kind: AnswerKind, nowMs: number): number {
    return nowMs - Math.max(this.#estimate(kind).at, this.#askedMs);
  }

  #estimate(kind: AnswerKind): MovingEstimate {
    const own = this.latencies[kind];
    return own.value === undefined ? this.upstream.latencies[kind] : own;
  }

  /** A call is on its way to find out; answers how to forget that. */
  ask(nowMs: number): () => void {
    this.#askedMs = nowMs;
    return () => {
      if (this.#askedMs === nowMs) this.#askedMs = Number.NEGATIVE_INFINITY;
    };
  }
}
