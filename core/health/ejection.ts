import { parseDuration } from '../settings';

/** When an upstream is ejected, and for how long; docs/contract.md, section 5. */
export interface EjectionRules {
  readonly consecutiveFailures: number;
  /** Of the last `sampled` attempts, all within `sampledWithinMs`. */
  readonly failureShare: number;
  readonly sampled: number;
  readonly sampledWithinMs: number;
  readonly outMs: number;
  readonly outAtMostMs: number;
  /** More suspect answers than this within `suspectWithinMs`. */
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

/** `ejection` of system.config.yml; durations as they are written, such as `30s`. */
export interface EjectionSettings {
  readonly consecutiveFailures: number;
  readonly outFor: string;
  readonly outAtMost: string;
}

/** `suspect` of system.config.yml. */
export interface SuspectSettings {
  readonly ejectAbove: number;
}

/** Returns the standard rules with what is configured. */
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
 * `in`: it is asked. `out`: it is not. `due`: its time is over and one call may try it. `probing`: that call is under way;
 * nobody else asks meanwhile.
 */
export type EjectionState = 'in' | 'out' | 'due' | 'probing';

/** A probe nobody has heard of for so long, because its node is gone for example, is not waited for. */
const PROBE_AT_MOST_MS = 30_000;

/** Ejections further back than this do not make the next one longer. */
const REMEMBERED_MS = 300_000;

/** Whether one upstream is left out. Pure but for what it remembers; the clock is the caller's. */
export class Ejection {
  readonly #rules: EjectionRules;
  /** The last attempts, oldest overwritten first: when, and whether they failed. */
  readonly #times: Float64Array;
  readonly #failures: Uint8Array;
  #next = 0;
  #consecutive = 0;
  #failingSinceMs = 0;
  #ejectedAtMs = 0;
  #outUntilMs: number | undefined;
  #probeUntilMs = 0;
  #ejections: number[] = [];
  #suspects: number[] = [];

  constructor(rules: EjectionRules) {
    this.#rules = rules;
    this.#times = new Float64Array(rules.sampled).fill(Number.NEGATIVE_INFINITY);
    this.#failures = new Uint8Array(rules.sampled);
  }

  /** Failed attempts since the last one that was answered. */
  get consecutiveFailures(): number {
    return this.#consecutive;
  }

  /** When a call may try it again; undefined while it is asked. */
  get outUntilMs(): number | undefined {
    return this.#outUntilMs;
  }

  state(nowMs: number): EjectionState {
    if (this.#outUntilMs === undefined) return 'in';
    if (nowMs < this.#outUntilMs) return 'out';
    return nowMs < this.#probeUntilMs ? 'probing' : 'due';
  }

  /** An attempt that began at `startedMs` was answered; true when that ends an ejection. */
  succeeded(startedMs: number, nowMs: number): boolean {
    this.#consecutive = 0;
    if (this.#outUntilMs === undefined) {
      this.#remember(false, nowMs);
      return false;
    }
    // What was asked before the ejection says nothing about now.
    if (startedMs < this.#ejectedAtMs) return false;
    this.restore();
    return true;
  }

  /** An attempt that began at `startedMs` failed; how long the upstream is out from now on, when this decides it. */
  failed(nowMs: number, startedMs = nowMs): number | undefined {
    // What was asked before the ejection and was silent since says nothing about now either.
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

  /** An answer reports more than its call allows; how long the upstream is out from now on, when this decides it. */
  suspected(nowMs: number): number | undefined {
    if (this.state(nowMs) === 'out') return undefined;
    const { suspectWithinMs, suspectAbove } = this.#rules;
    this.#suspects = [...this.#suspects.filter((at) => nowMs - at < suspectWithinMs), nowMs];
    if (this.#suspects.length <= suspectAbove) return undefined;
    this.#suspects = [];
    this.#failingSinceMs = nowMs;
    return this.#ejectOnceMore(nowMs);
  }

  /** The one call that tries is on its way. */
  probe(nowMs: number): void {
    this.#probeUntilMs = nowMs + PROBE_AT_MOST_MS;
  }

  /** That call's client has left, or it was refused before it asked: another call may try. */
  giveUpProbe(): void {
    this.#probeUntilMs = 0;
  }

  /** As another node says. */
  putOut(outMs: number, nowMs: number): void {
    this.#ejectedAtMs = nowMs;
    this.#outUntilMs = nowMs + outMs;
    this.#probeUntilMs = 0;
  }

  /** Asked again as if nothing had been. */
  restore(): void {
    this.#outUntilMs = undefined;
    this.#probeUntilMs = 0;
    this.#consecutive = 0;
    this.#times.fill(Number.NEGATIVE_INFINITY);
  }

  #ejectOnceMore(nowMs: number): number {
    this.#ejections = [...this.#ejections.filter((at) => nowMs - at < REMEMBERED_MS), nowMs];
    return this.#eject(nowMs);
  }

  /**
   * `outMs` × n. n counts the ejections lately, or, once it is more, every 2 × `outMs` it has been failing: the probes of a long
   * outage get rare, and the end of a short one is still seen within `outMs`.
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
