import { newId } from '../base/ids';
import { parseDuration } from '../base/settings';

/** The rules for when, and how long, an upstream is ejected (not called after failures); docs/contract.md, section 5. */
export interface EjectionRules {
  readonly consecutiveFailures: number;
  /** The share of failures that ejects an upstream. It is computed from the last `sampled` attempts, if all lie within `sampledWithinMs`. */
  readonly failureShare: number;
  readonly sampled: number;
  readonly sampledWithinMs: number;
  readonly outMs: number;
  readonly maxOutMs: number;
}

export const EJECTION_RULES: EjectionRules = {
  consecutiveFailures: 5,
  failureShare: 0.2,
  sampled: 20,
  sampledWithinMs: 30_000,
  outMs: 30_000,
  maxOutMs: 300_000,
};

/** The section `ejection` of system.config.yml. Durations are texts such as `30s`. */
interface EjectionSettings {
  readonly consecutiveFailures: number;
  readonly baseTime: string;
  readonly maxTime: string;
}

/** Returns the rules for ejecting upstreams after failures: the configured values, and standard values for the rest. */
export function ejectionRules({ consecutiveFailures, baseTime, maxTime }: EjectionSettings): EjectionRules {
  return {
    ...EJECTION_RULES,
    consecutiveFailures,
    outMs: parseDuration(baseTime),
    maxOutMs: parseDuration(maxTime),
  };
}

/**
 * `in`: calls try the upstream. `out`: no call does. `due`: the ejection time has ended, and one call may probe. `probing`: that call is
 * running, and no other call tries the upstream meanwhile.
 */
export type EjectionState = 'in' | 'out' | 'due' | 'probing';

/** How long other calls wait for the outcome of a probe. If the probing node has stopped, the outcome never arrives. */
const MAX_PROBE_MS = 30_000;

/** How long an ejection of an upstream is remembered, in milliseconds. A further ejection within this time lasts longer. */
const REMEMBERED_MS = 300_000;

/**
 * Failures of at least this many accounts eject an upstream. Failures of fewer accounts eject it only if no other account has called it
 * within `ASKED_WITHIN_MS`, because one account can make its own calls fail.
 */
const MANY_ACCOUNTS = 3;
const ASKED_WITHIN_MS = 60_000;

/** Whether the last call of one account to an upstream failed. */
export interface AccountOutcome {
  readonly accountId: string;
  readonly hasFailed: boolean;
}

/** Adds the newest outcome of an account's call. Keeps the last outcome of each of the last `MANY_ACCOUNTS` accounts; an ejection needs no more. */
export function withLatest<Of extends AccountOutcome>(outcomes: readonly Of[], latest: Of): readonly Of[] {
  const others = outcomes.filter(({ accountId }) => accountId !== latest.accountId);
  return [...others.slice(1 - MANY_ACCOUNTS), latest];
}

/** A failed attempt that may eject its upstream. */
export interface CountedFailure {
  readonly accountId: string;
  /** Whether the connection failed. An account cannot cause such a failure, so it counts even if only one account has failures. */
  readonly isDial: boolean;
  readonly startedMs: number;
}

/** Decides whether one upstream is ejected. It does no I/O and reads no clock: the caller passes the time. */
export class Ejection {
  /** The times at which the last attempts ended; other arrays say whether they failed. A new attempt overwrites the oldest. */
  readonly #times: Float64Array;
  readonly #failures: (CountedFailure | undefined)[];
  #next = 0;
  /** The accounts that last called the upstream, on any node. */
  #askers: readonly (AccountOutcome & { atMs: number })[] = [];
  #consecutive = 0;
  #failingSinceMs = 0;
  #ejectedAtMs = 0;
  #outUntilMs: number | undefined;
  #probeUntilMs = 0;
  #id = '';
  /** The ids of the ejections in force on this and other nodes, and of those that the last `restore` ended. */
  #ids = new Set<string>();
  #endedIds: ReadonlySet<string> = new Set();
  #ejections: number[] = [];

  constructor(private readonly rules: EjectionRules) {
    this.#times = new Float64Array(rules.sampled).fill(Number.NEGATIVE_INFINITY);
    this.#failures = new Array(rules.sampled);
  }

  get consecutiveFailures(): number {
    return this.#consecutive;
  }

  get id(): string {
    return this.#id;
  }

  /** Until when the upstream is ejected; after that a call may probe it. undefined if it is not ejected. */
  get outUntilMs(): number | undefined {
    return this.#outUntilMs;
  }

  state(nowMs: number): EjectionState {
    if (this.#outUntilMs === undefined) return 'in';
    if (nowMs < this.#outUntilMs) return 'out';
    return nowMs < this.#probeUntilMs ? 'probing' : 'due';
  }

  /** Records whether the last call of an account to the upstream failed, on this or another node. */
  noteAccount({ accountId, hasFailed }: AccountOutcome, nowMs: number): void {
    const last = this.#askers.at(-1);
    if (last?.accountId === accountId && last.hasFailed === hasFailed) last.atMs = nowMs;
    else this.#askers = withLatest(this.#askers, { accountId, hasFailed, atMs: nowMs });
  }

  /** Records that the upstream answered an attempt begun at `startedMs`. Returns true if this ends an ejection. */
  succeeded(startedMs: number, nowMs: number): boolean {
    this.#consecutive = 0;
    if (this.#outUntilMs === undefined) {
      this.#remember(undefined, nowMs);
      return false;
    }
    // An attempt that began before the ejection does not show the upstream's current state.
    if (startedMs < this.#ejectedAtMs) return false;
    this.restore();
    return true;
  }

  /** Records a failed attempt. Returns how long the upstream is ejected from now on; undefined if this failure does not eject it. */
  failed(nowMs: number, failure: CountedFailure): number | undefined {
    // An attempt that began before the ejection does not show the upstream's current state, even if it fails only now.
    if (failure.startedMs < this.#ejectedAtMs) return undefined;
    if (this.#consecutive === 0) this.#failingSinceMs = nowMs;
    this.#consecutive += 1;
    const state = this.state(nowMs);
    if (state === 'out') return undefined;
    if (state !== 'in') return this.#eject(nowMs);
    this.#remember(failure, nowMs);
    if (!this.#failsInARow(nowMs) && !this.#failsTooOften(nowMs)) return undefined;
    this.#ejections = [...this.#ejections.filter((at) => nowMs - at < REMEMBERED_MS), nowMs];
    return this.#eject(nowMs);
  }

  /** Records that a call probes the ejected upstream (tests whether it works again) from now on. Only one call probes at a time. */
  probe(nowMs: number): void {
    this.#probeUntilMs = nowMs + MAX_PROBE_MS;
  }

  /** Lets another call probe, because the probing call ended before its attempt: its client disconnected, or the gateway refused it. */
  giveUpProbe(): void {
    this.#probeUntilMs = 0;
  }

  /**
   * Applies an ejection that another node published. Ignores an ejection that has already ended on this node, because its event may arrive
   * late. An ejection that is already known must not end a running probe.
   */
  apply(id: string, outMs: number, nowMs: number): void {
    if (this.#endedIds.has(id)) return;
    this.#ids.add(id);
    const leftMs = this.#outUntilMs === undefined ? -1 : Math.max(0, this.#outUntilMs - nowMs);
    if (outMs > leftMs) this.putOut(outMs, nowMs, id);
  }

  putOut(outMs: number, nowMs: number, id = newId()): void {
    this.#id = id;
    this.#ids.add(id);
    this.#ejectedAtMs = nowMs;
    this.#outUntilMs = nowMs + outMs;
    this.#probeUntilMs = 0;
  }

  /** Ends the ejection of the upstream and discards the attempts before it. */
  restore(): void {
    this.#outUntilMs = undefined;
    this.#endedIds = this.#ids;
    this.#ids = new Set();
    this.#probeUntilMs = 0;
    this.#consecutive = 0;
    this.#times.fill(Number.NEGATIVE_INFINITY);
  }

  /**
   * Ejects for `outMs` × n. n is the number of recent ejections or, if larger, the time since the first failure divided by 2 × `outMs`.
   * Probes become rare in a long outage, but the end of a short outage is still detected within `outMs`.
   */
  #eject(nowMs: number): number {
    const failingFor = Math.floor((nowMs - this.#failingSinceMs) / (2 * this.rules.outMs));
    const times = Math.max(1, this.#ejections.length, failingFor);
    const outMs = Math.min(times * this.rules.outMs, this.rules.maxOutMs);
    this.putOut(outMs, nowMs);
    return outMs;
  }

  #remember(failure: CountedFailure | undefined, nowMs: number): void {
    this.#times[this.#next] = nowMs;
    this.#failures[this.#next] = failure;
    this.#next = (this.#next + 1) % this.rules.sampled;
  }

  #failsInARow(nowMs: number): boolean {
    const { consecutiveFailures, sampled } = this.rules;
    if (this.#consecutive < consecutiveFailures) return false;
    const failures = this.#lastFailures(Math.min(this.#consecutive, sampled));
    return this.#isOfMany(failures, Math.min(consecutiveFailures, sampled), nowMs);
  }

  #failsTooOften(nowMs: number): boolean {
    const { sampled, sampledWithinMs, failureShare } = this.rules;
    const oldestMs = this.#times[this.#next] ?? Number.NEGATIVE_INFINITY;
    if (nowMs - oldestMs > sampledWithinMs) return false;
    const failures = this.#lastFailures(sampled);
    const least = failureShare * sampled;
    return failures.length >= least && this.#isOfMany(failures, least, nowMs);
  }

  /** Returns the failures among the given number of this node's last attempts. */
  #lastFailures(attempts: number): readonly CountedFailure[] {
    const { sampled } = this.rules;
    const failures: CountedFailure[] = [];
    for (let back = 1; back <= attempts; back += 1) {
      const failure = this.#failures[(this.#next - back + sampled) % sampled];
      if (failure !== undefined) failures.push(failure);
    }
    return failures;
  }

  /** Returns whether the failures may eject the upstream: they concern enough accounts, or no other account's last call there succeeded. */
  #isOfMany(failures: readonly CountedFailure[], least: number, nowMs: number): boolean {
    if (failures.filter(({ isDial }) => isDial).length >= least) return true;
    const accounts = new Set(failures.map(({ accountId }) => accountId));
    const askers = this.#askers.filter(({ atMs }) => nowMs - atMs < ASKED_WITHIN_MS);
    return (
      accounts.size >= MANY_ACCOUNTS || askers.every(({ accountId, hasFailed }) => hasFailed || accounts.has(accountId))
    );
  }
}
