import { newId } from '../ids';
import { parseDuration } from '../settings';

/** When an upstream is ejected, and for how long; docs/contract.md, section 5. */
export interface EjectionRules {
  readonly consecutiveFailures: number;
  /** The share of failures that ejects, among the last `sampled` attempts if all lie within `sampledWithinMs`. */
  readonly failureShare: number;
  readonly sampled: number;
  readonly sampledWithinMs: number;
  readonly outMs: number;
  readonly outAtMostMs: number;
  /** How many suspect answers within `suspectWithinMs` are tolerated; one more ejects. */
  readonly suspectAbove: number;
  readonly suspectWithinMs: number;
}

export const EJECTION_RULES: EjectionRules = {
  consecutiveFailures: 5,
  failureShare: 0.2,
  sampled: 20,
  sampledWithinMs: 30_000,
  outMs: 30_000,
  outAtMostMs: 300_000,
  suspectAbove: 5,
  suspectWithinMs: 600_000,
};

/** The section `ejection` of system.config.yml. Durations are strings such as `30s`. */
export interface EjectionSettings {
  readonly consecutiveFailures: number;
  readonly outFor: string;
  readonly outAtMost: string;
}

/** The section `suspect` of system.config.yml. */
export interface SuspectSettings {
  readonly ejectAbove: number;
}

/** Returns the standard rules with the configured values. */
export function ejectionRules(settings: EjectionSettings, { ejectAbove }: SuspectSettings): EjectionRules {
  const { consecutiveFailures, outFor, outAtMost } = settings;
  return {
    ...EJECTION_RULES,
    consecutiveFailures,
    outMs: parseDuration(outFor),
    outAtMostMs: parseDuration(outAtMost),
    suspectAbove: ejectAbove,
  };
}

/**
 * `in`: calls try the upstream. `out`: no call does. `due`: the ejection time is over, and one call may probe. `probing`: that
 * call is under way, and no other call tries the upstream meanwhile.
 */
export type EjectionState = 'in' | 'out' | 'due' | 'probing';

/** How long other calls wait for the outcome of a probe. It never arrives if the probing node has stopped. */
const PROBE_AT_MOST_MS = 30_000;

/** Ejections longer ago than this do not make the next one longer. */
const REMEMBERED_MS = 300_000;

/** Decides whether one upstream is ejected. It does no I/O, and its caller passes the time. */
export class Ejection {
  readonly #rules: EjectionRules;
  /** The last attempts: when each ended, and whether it failed. The oldest is overwritten first. */
  readonly #times: Float64Array;
  readonly #failures: Uint8Array;
  #next = 0;
  #consecutive = 0;
  #failingSinceMs = 0;
  #ejectedAtMs = 0;
  #outUntilMs: number | undefined;
  #probeUntilMs = 0;
  #id = '';
  /** The ejections in force, of this and of other nodes, and those that the last `restore` ended. */
  #ids = new Set<string>();
  #endedIds: ReadonlySet<string> = new Set();
  #ejections: number[] = [];
  #suspects: number[] = [];

  constructor(rules: EjectionRules) {
    this.#rules = rules;
    this.#times = new Float64Array(rules.sampled).fill(Number.NEGATIVE_INFINITY);
    this.#failures = new Uint8Array(rules.sampled);
  }

  /** The number of failed attempts since the last answer. */
  get consecutiveFailures(): number {
    return this.#consecutive;
  }

  /** Identifies the last ejection among those of all nodes. */
  get id(): string {
    return this.#id;
  }

  /** When a call may probe the upstream; undefined while it is not ejected. */
  get outUntilMs(): number | undefined {
    return this.#outUntilMs;
  }

  state(nowMs: number): EjectionState {
    if (this.#outUntilMs === undefined) return 'in';
    if (nowMs < this.#outUntilMs) return 'out';
    return nowMs < this.#probeUntilMs ? 'probing' : 'due';
  }

  /** Records that an attempt begun at `startedMs` was answered. Returns true if this ends an ejection. */
  succeeded(startedMs: number, nowMs: number): boolean {
    this.#consecutive = 0;
    if (this.#outUntilMs === undefined) {
      this.#remember(false, nowMs);
      return false;
    }
    // An attempt from before the ejection says nothing about the upstream now.
    if (startedMs < this.#ejectedAtMs) return false;
    this.restore();
    return true;
  }

  /**
   * Records that an attempt begun at `startedMs` failed. Returns how long the upstream is ejected from now on; undefined if this
   * failure does not eject it.
   */
  failed(nowMs: number, startedMs = nowMs): number | undefined {
    // An attempt from before the ejection says nothing about the upstream now, even if it fails only now.
    if (startedMs < this.#ejectedAtMs) return undefined;
    if (this.#consecutive === 0) this.#failingSinceMs = nowMs;
    this.#consecutive += 1;
    const state = this.state(nowMs);
    if (state === 'out') return undefined;
    if (state !== 'in') return this.#eject(nowMs);
    this.#remember(true, nowMs);
    const isOver = this.#consecutive >= this.#rules.consecutiveFailures || this.#failsTooOften(nowMs);
    if (!isOver) return undefined;
    return this.#ejectOnceMore(nowMs);
  }

  /**
   * Notes an answer that reports more than its call allows. Returns how long the upstream is ejected from now on; undefined if
   * this answer does not eject it.
   */
  suspected(nowMs: number): number | undefined {
    if (this.state(nowMs) === 'out') return undefined;
    const { suspectWithinMs, suspectAbove } = this.#rules;
    this.#suspects = [...this.#suspects.filter((at) => nowMs - at < suspectWithinMs), nowMs];
    if (this.#suspects.length <= suspectAbove) return undefined;
    this.#suspects = [];
    this.#failingSinceMs = nowMs;
    return this.#ejectOnceMore(nowMs);
  }

  /** Records that a call probes the upstream from now on. Only one call probes at a time. */
  probe(nowMs: number): void {
    this.#probeUntilMs = nowMs + PROBE_AT_MOST_MS;
  }

  /** Lets another call probe, because the probing call ended before its attempt: its client disconnected, or it was refused. */
  giveUpProbe(): void {
    this.#probeUntilMs = 0;
  }

  /**
   * Applies an ejection that another node published. Ignores one that has ended here, because its event may arrive only then. One
   * that is known already must not end a running probe.
   */
  apply(id: string, outMs: number, nowMs: number): void {
    if (this.#endedIds.has(id)) return;
    this.#ids.add(id);
    const leftMs = this.#outUntilMs === undefined ? -1 : Math.max(0, this.#outUntilMs - nowMs);
    if (outMs > leftMs) this.putOut(outMs, nowMs, id);
  }

  /** Ejects the upstream for this time from now on. */
  putOut(outMs: number, nowMs: number, id = newId()): void {
    this.#id = id;
    this.#ids.add(id);
    this.#ejectedAtMs = nowMs;
    this.#outUntilMs = nowMs + outMs;
    this.#probeUntilMs = 0;
  }

  /** Ends the ejection and forgets the attempts before it. */
  restore(): void {
    this.#outUntilMs = undefined;
    this.#endedIds = this.#ids;
    this.#ids = new Set();
    this.#probeUntilMs = 0;
    this.#consecutive = 0;
    this.#times.fill(Number.NEGATIVE_INFINITY);
  }

  #ejectOnceMore(nowMs: number): number {
    this.#ejections = [...this.#ejections.filter((at) => nowMs - at < REMEMBERED_MS), nowMs];
    return this.#eject(nowMs);
  }

  /**
   * Ejects for `outMs` × n. n is the number of recent ejections or, if larger, one for every 2 × `outMs` of failing. Probes then
   * become rare in a long outage, and the end of a short one is still detected within `outMs`.
   */
  #eject(nowMs: number): number {
    const failingFor = Math.floor((nowMs - this.#failingSinceMs) / (2 * this.#rules.outMs));
    const times = Math.max(1, this.#ejections.length, failingFor);
    const outMs = Math.min(times * this.#rules.outMs, this.#rules.outAtMostMs);
    this.putOut(outMs, nowMs);
    return outMs;
  }

  #remember(hasFailed: boolean, nowMs: number): void {
    this.#times[this.#next] = nowMs;
    this.#failures[this.#next] = hasFailed ? 1 : 0;
    this.#next = (this.#next + 1) % this.#rules.sampled;
  }

  #failsTooOften(nowMs: number): boolean {
    const { sampled, sampledWithinMs, failureShare } = this.#rules;
    const oldestMs = this.#times[this.#next] ?? Number.NEGATIVE_INFINITY;
    if (nowMs - oldestMs > sampledWithinMs) return false;
    let failures = 0;
    for (const failed of this.#failures) failures += failed;
    return failures >= failureShare * sampled;
  }
}
