import { getOrInsert } from '../base/collections';
import type { Candidate, Upstream } from '../catalog/catalog';
import type { Verdict } from '../catalog/upstream';
import type { Usage } from '../catalog/usage';
import type { AttemptOutcome } from '../wire/dial-failure';
import { type CredentialGauge, isAboutCredential, RATE_LIMITED, usableCredentials } from './credentials';
import { type AccountOutcome, type CountedFailure, EJECTION_RULES, type EjectionRules } from './ejection';
import { answerKindOf, type ModelGauge, UpstreamGauge } from './gauge';
import { type AskedFor, cacheReadShareOf, ModelUse } from './model-use';
import { type Observed, Tally } from './tally';

type AskedCandidate = Pick<Candidate, 'upstream' | 'model'>;

type Answering = Pick<AskedCandidate, 'upstream'> & Partial<AskedCandidate>;

interface AttemptAnswer {
  readonly accountId: string;
  readonly ms: number;
  readonly stream: boolean;
}

export interface AttemptFailure {
  readonly outcome: AttemptOutcome;
  readonly status: number | undefined;
  /** The adapter's decision about what to do after an unsuccessful answer; `next` (try the next candidate) if there was no answer. */
  readonly verdict: Verdict;
  readonly retryAfterMs: number | undefined;
  /** Whether the connection failed, even if only because connecting took too long. */
  readonly isDial?: boolean;
}

/** A failed attempt of a call. */
export interface FailedAttempt {
  readonly accountId: string;
  /** How long the attempt took, in milliseconds; 0 for an answer that began earlier and broke off just now. */
  readonly ms: number;
  /** Whether the failure may eject the upstream. False if the call's host pins the upstream, and for a timeout that the call's output limit explains. */
  readonly mayEject: boolean;
}

/** An event that a node publishes to the other nodes at once. */
export type HealthEvent =
  | { readonly upstream: string; readonly kind: 'out'; readonly ejection: string; readonly forMs: number }
  | { readonly upstream: string; readonly kind: 'resting'; readonly forMs: number }
  | {
      readonly upstream: string;
      readonly kind: 'credential resting';
      readonly credential: string;
      readonly status: number;
      readonly forMs: number;
    }
  | { readonly upstream: string; readonly kind: 'back' | 'probing' | 'probed in vain' | 'taken out' | 'brought back' };

/** A credential that an upstream has just refused or rate limited, and that was not already resting (temporarily unused). */
interface CredentialRefused {
  readonly credential: string;
  readonly status: number;
  /** How long the credential is not used; undefined if it is the upstream's only credential, which stays in use. */
  readonly restsForMs: number | undefined;
}

/** Receives that this process has ejected an upstream, or found that an ejected one answers again. */
type EjectionListener = (
  type: 'upstream.ejected' | 'upstream.returned',
  upstream: string,
  more?: { readonly ejectedForSeconds: number },
) => void;

interface HealthOptions {
  readonly rules?: EjectionRules;
  /** Reads a monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

const MAX_REST_MS = 3_600_000;

/** HTTP statuses that concern one model or one call, not the upstream as a whole. */
const NOT_ABOUT_THE_UPSTREAM: ReadonlySet<number | undefined> = new Set([404, 409]);

/** What this process knows of the upstreams, by name. It is kept across configuration reloads, and all its methods are synchronous. */
export class UpstreamHealth {
  readonly now: () => number;
  /** How often operators have disabled or enabled an upstream, on any node. */
  operatorChanges = 0;
  readonly #rules: EjectionRules;
  readonly #gauges = new Map<string, UpstreamGauge>();
  readonly #uses = new Map<string, ModelUse>();
  #tally = new Map<string, Tally>();
  #publish: (event: HealthEvent) => void = () => undefined;
  #whenObserved = () => {};
  #whenEjected: EjectionListener = () => undefined;

  constructor({ rules = EJECTION_RULES, now = () => performance.now() }: HealthOptions = {}) {
    this.#rules = rules;
    this.now = now;
  }

  upstream(name: string): UpstreamGauge {
    let gauge = this.#gauges.get(name);
    if (gauge === undefined) {
      gauge = new UpstreamGauge(name, this.#rules);
      this.#gauges.set(name, gauge);
    }
    return gauge;
  }

  /** Returns all upstreams that this process has observed or looked up. */
  upstreams(): Iterable<UpstreamGauge> {
    return this.#gauges.values();
  }

  gauge({ upstream, model }: AskedCandidate): ModelGauge {
    return this.upstream(upstream.name).model(model.name);
  }

  use(model: string): ModelUse {
    return getOrInsert(this.#uses, model, newModelUse);
  }

  /**
   * Records an answered attempt. `ms` is the time to the first content of a stream, otherwise to the end of the body. If `model` is
   * undefined, the upstream only returned a stored object, so the time says nothing about model calls.
   */
  answered({ upstream, model }: Answering, { accountId, ms, stream }: AttemptAnswer): void {
    const nowMs = this.now();
    const gauge = this.upstream(upstream.name);
    gauge.answers += 1;
    gauge.credential(upstream.credential.name).answered(nowMs - ms);
    if (gauge.ejection.succeeded(nowMs - ms, nowMs)) this.#returned(gauge);
    gauge.noteOutcomes(0, nowMs);
    const tally = this.#tallyOf(gauge.name);
    tally.answers += 1;
    if (model !== undefined) {
      noteLatency(gauge, model.name, stream, ms, nowMs);
      tally.noteLatency(model.name, stream, ms);
    }
    this.#noteAccount(gauge, { accountId, hasFailed: false }, nowMs);
  }

  /**
   * Records that an attempt got no answer, or that its answer broke off just now. Ignores failures that the upstream did not cause, such as
   * an invalid call. If the upstream refused the credential and the credential was not already resting, returns it, so that the operator is
   * informed.
   */
  failed(
    { upstream }: Pick<AskedCandidate, 'upstream'>,
    failure: AttemptFailure,
    { accountId, ms, mayEject }: FailedAttempt,
  ): CredentialRefused | undefined {
    const { name } = upstream;
    const { outcome, verdict, status, retryAfterMs, isDial = false } = failure;
    const nowMs = this.now();
    const gauge = this.upstream(name);
    if (outcome === 'cancelled') return void this.#giveUpProbe(gauge);
    if (verdict !== 'next' || NOT_ABOUT_THE_UPSTREAM.has(status)) return void this.#answeredSomehow(gauge, nowMs);
    gauge.failures.set(outcome, (gauge.failures.get(outcome) ?? 0) + 1);
    const isRefusal = outcome === 'status' && isAboutCredential(status);
    const refused = isRefusal ? this.#refused(upstream, gauge, { status, retryAfterMs }, nowMs) : undefined;
    // While another credential is usable, the refusal of this one says nothing about the upstream itself.
    if (isRefusal && upstream.credentials.length > 1 && usableCredentials(upstream, this).length > 0) {
      this.#answeredSomehow(gauge, nowMs);
      return refused;
    }
    gauge.lastFailureMs = nowMs;
    gauge.noteOutcomes(1, nowMs);
    this.#tallyOf(name).failures += 1;
    if (!mayEject || outcome === 'adapter_fault') this.#giveUpProbe(gauge);
    else this.#countFailure(gauge, { accountId, isDial, startedMs: nowMs - ms }, nowMs);
    const restMs = isRefusal ? restOfUpstream(upstream, gauge, { status, retryAfterMs }, nowMs) : undefined;
    if (restMs !== undefined) this.#rest(gauge, restMs, nowMs);
    return refused;
  }

  #countFailure(gauge: UpstreamGauge, failure: CountedFailure, nowMs: number): void {
    const { name: upstream, ejection } = gauge;
    this.#noteAccount(gauge, { accountId: failure.accountId, hasFailed: true }, nowMs);
    const isNew = ejection.outUntilMs === undefined;
    const forMs = ejection.failed(nowMs, failure);
    if (forMs === undefined) return;
    this.#publish({ upstream, kind: 'out', ejection: ejection.id, forMs });
    if (isNew) this.#whenEjected('upstream.ejected', upstream, { ejectedForSeconds: Math.round(forMs / 1_000) });
  }

  #refused(
    { name: upstream, credential, credentials }: Upstream,
    gauge: UpstreamGauge,
    { status = 0, retryAfterMs }: Pick<AttemptFailure, 'status' | 'retryAfterMs'>,
    nowMs: number,
  ): CredentialRefused | undefined {
    const known = gauge.credential(credential.name);
    const forMs = known.refused(credential, status, retryAfterMs, nowMs);
    if (forMs === undefined) return undefined;
    const isAlone = credentials.length === 1;
    if (!isAlone) this.#publish({ upstream, kind: 'credential resting', credential: credential.name, status, forMs });
    return { credential: credential.name, status, restsForMs: isAlone ? undefined : forMs };
  }

  #noteAccount({ name, ejection }: UpstreamGauge, outcome: AccountOutcome, nowMs: number): void {
    ejection.noteAccount(outcome, nowMs);
    this.#tallyOf(name).noteAccount(outcome);
  }

  /** Ends a running probe, because any answer shows that the upstream works. The answer changes nothing else. */
  #answeredSomehow(gauge: UpstreamGauge, nowMs: number): void {
    if (gauge.ejection.state(nowMs) !== 'probing') return;
    gauge.ejection.restore();
    this.#returned(gauge);
  }

  #returned(gauge: UpstreamGauge): void {
    gauge.beginAnew();
    this.#publish({ upstream: gauge.name, kind: 'back' });
    this.#whenEjected('upstream.returned', gauge.name);
  }

  #rest(gauge: UpstreamGauge, retryAfterMs: number, nowMs: number): void {
    const forMs = Math.min(retryAfterMs, MAX_REST_MS);
    gauge.restsUntilMs = Math.max(gauge.restsUntilMs, nowMs + forMs);
    this.#publish({ upstream: gauge.name, kind: 'resting', forMs });
  }

  used(model: string, candidate: AskedCandidate, usage: Usage, asked: AskedFor): void {
    this.use(model).note(usage, asked);
    const readShare = cacheReadShareOf(usage);
    if (readShare === undefined) return;
    const gauge = this.gauge(candidate);
    gauge.cacheReads.note(readShare, this.now());
    if (asked.session !== undefined) gauge.sessionReads.note(readShare, this.now());
  }

  /** Records how many output tokens the upstream reported for a stream, and how many milliseconds the stream took. */
  spoke(candidate: AskedCandidate, outputTokens: number, ms: number): void {
    this.gauge(candidate).noteSpeed(outputTokens, ms, this.now());
  }

  /**
   * Records that a call tries a candidate of unknown latency, because other calls then need not try it. Begins a probe if one is due.
   * Returns a function for a call that ends before its attempt: it undoes the record and the probe.
   */
  asked(gauge: ModelGauge): () => void {
    const nowMs = this.now();
    const forget = gauge.ask(nowMs);
    if (gauge.state !== 'due') return forget;
    gauge.upstream.ejection.probe(nowMs);
    this.#publish({ upstream: gauge.upstream.name, kind: 'probing' });
    let isGivenUp = false;
    return () => {
      forget();
      if (!isGivenUp) this.#giveUpProbe(gauge.upstream);
      isGivenUp = true;
    };
  }

  /** Ends a probe without an outcome, so that another call may probe. */
  #giveUpProbe({ name, ejection }: UpstreamGauge): void {
    if (ejection.state(this.now()) !== 'probing') return;
    ejection.giveUpProbe();
    this.#publish({ upstream: name, kind: 'probed in vain' });
  }

  /** Returns whether an attempt at the upstream is likely to fail, because one failed recently and none was answered since. */
  hasFailedRecently(upstream: string): boolean {
    return this.upstream(upstream).hasFailedRecently(this.now());
  }

  /** Returns whether the upstream is not ejected and answers most attempts. */
  mostlyAnswers(upstream: string): boolean {
    return this.upstream(upstream).mostlyAnswers(this.now());
  }

  /** Disables an upstream until an operator enables it. */
  disable(upstream: string): void {
    this.operatorChanges += 1;
    this.upstream(upstream).isDisabledByOperator = true;
    this.#publish({ upstream, kind: 'taken out' });
  }

  /** Enables an upstream for an operator, as if it had never failed. This also ends an ejection. */
  enable(upstream: string): void {
    this.operatorChanges += 1;
    const gauge = this.upstream(upstream);
    const wasEjected = gauge.ejection.outUntilMs !== undefined;
    gauge.restore();
    this.#publish({ upstream, kind: 'brought back' });
    if (wasEjected) this.#whenEjected('upstream.returned', upstream);
  }

  /** Disables exactly the upstreams that are disabled in Postgres, because this node may have missed events. */
  applyDisabled(disabled: ReadonlySet<string>): void {
    for (const name of disabled) this.upstream(name).isDisabledByOperator = true;
    for (const gauge of this.#gauges.values()) {
      if (gauge.isDisabledByOperator && !disabled.has(gauge.name)) gauge.restore();
    }
  }

  /** Sets the function that publishes events to the other nodes. */
  onEvent(publish: (event: HealthEvent) => void): void {
    this.#publish = publish;
  }

  /** Sets the function that receives ejections which this process decides, and their ends. */
  onEjection(listener: EjectionListener): void {
    this.#whenEjected = listener;
  }

  /** Sets the function that is called at the first observation after each call of `takeObserved`. */
  onObserved(listener: () => void): void {
    this.#whenObserved = listener;
    if (this.#tally.size > 0) listener();
  }

  apply(event: HealthEvent): void {
    const nowMs = this.now();
    const gauge = this.upstream(event.upstream);
    switch (event.kind) {
      case 'out':
        gauge.ejection.apply(event.ejection, Math.min(event.forMs, this.#rules.maxOutMs), nowMs);
        break;
      case 'back':
        if (gauge.ejection.outUntilMs === undefined) break;
        gauge.ejection.restore();
        gauge.beginAnew();
        break;
      case 'taken out':
        this.operatorChanges += 1;
        gauge.isDisabledByOperator = true;
        break;
      case 'brought back':
        this.operatorChanges += 1;
        gauge.restore();
        break;
      case 'probing':
        gauge.ejection.probe(nowMs);
        break;
      case 'probed in vain':
        gauge.ejection.giveUpProbe();
        break;
      case 'credential resting':
        gauge.credential(event.credential).rest(event.status, event.forMs, nowMs);
        break;
      case 'resting':
        gauge.restsUntilMs = Math.max(gauge.restsUntilMs, nowMs + Math.min(event.forMs, MAX_REST_MS));
    }
  }

  /** Returns what this node has observed since the previous call of this function. */
  takeObserved(): readonly Observed[] {
    const tallies = [...this.#tally.values()];
    this.#tally = new Map();
    return tallies.map((tally) => tally.read());
  }

  applyObserved({ upstream, answered, failed, accounts, latencies }: Observed): void {
    const nowMs = this.now();
    const gauge = this.upstream(upstream);
    const attempts = answered + failed;
    if (attempts > 0) gauge.noteOutcomes(failed / attempts, nowMs, attempts);
    for (const each of accounts) gauge.ejection.noteAccount(each, nowMs);
    for (const { model, stream, times, totalMs } of latencies) {
      if (times > 0) noteLatency(gauge, model, stream, totalMs / times, nowMs, times);
    }
  }

  /** Returns the events that a newly started node needs. They say which upstreams are ejected or resting (not a first choice), and for how long. */
  standing(): readonly HealthEvent[] {
    const nowMs = this.now();
    return [...this.#gauges.values()].flatMap(({ name, ejection, restsUntilMs, credentials }): HealthEvent[] => [
      ...(ejection.outUntilMs === undefined
        ? []
        : [
            {
              upstream: name,
              kind: 'out',
              ejection: ejection.id,
              forMs: Math.max(0, ejection.outUntilMs - nowMs),
            } as const,
          ]),
      ...(restsUntilMs > nowMs ? [{ upstream: name, kind: 'resting', forMs: restsUntilMs - nowMs } as const] : []),
      ...[...credentials.values()].flatMap((each) => restingEvents(name, each, nowMs)),
    ]);
  }

  #tallyOf(upstream: string): Tally {
    let tally = this.#tally.get(upstream);
    if (tally === undefined) {
      tally = new Tally(upstream);
      this.#tally.set(upstream, tally);
      if (this.#tally.size === 1) this.#whenObserved();
    }
    return tally;
  }
}

function restingEvents(
  upstream: string,
  { name: credential, refusedWith: status, restsUntilMs }: CredentialGauge,
  nowMs: number,
): HealthEvent[] {
  if (status === undefined || restsUntilMs <= nowMs) return [];
  return [{ upstream, kind: 'credential resting', credential, status, forMs: restsUntilMs - nowMs }];
}

/**
 * Returns how long an upstream rests (is not a first choice) because no credential is usable; undefined if it does not rest. An upstream
 * with one credential rests as long as the vendor requests.
 */
function restOfUpstream(
  { credentials }: Upstream,
  gauge: UpstreamGauge,
  { status, retryAfterMs }: Pick<AttemptFailure, 'status' | 'retryAfterMs'>,
  nowMs: number,
): number | undefined {
  if (credentials.length === 1) return status === RATE_LIMITED ? retryAfterMs : undefined;
  const present = credentials.filter(({ value }) => value !== undefined);
  const untilMs = present.map(({ name }) => gauge.credential(name).restsUntilMs);
  return Math.max(0, Math.min(...untilMs) - nowMs);
}

function noteLatency(gauge: UpstreamGauge, model: string, stream: boolean, ms: number, nowMs: number, times = 1): void {
  const kind = answerKindOf({ stream });
  gauge.latencies[kind].note(ms, nowMs, times);
  gauge.model(model).latencies[kind].note(ms, nowMs, times);
}

function newModelUse(): ModelUse {
  return new ModelUse();
}
