import type { AttemptOutcome } from './call';
import type { Candidate } from './catalog';
import type { Verdict } from './upstream';

/** What this process has seen of an upstream lately; strategies rank by it. */
export interface UpstreamFacts {
  /** Moving average of the time to the first content, in milliseconds; undefined while nothing was seen. */
  readonly firstTokenMs: number | undefined;
  /** Share of answered attempts, 1 while nothing was seen. */
  readonly successRate: number;
}

export type AskedCandidate = Pick<Candidate, 'upstream' | 'model'>;

export interface AttemptAnswer {
  readonly ms: number;
  readonly stream: boolean;
}

export interface AttemptFailure {
  readonly outcome: AttemptOutcome;
  readonly status: number | undefined;
  readonly verdict: Verdict;
  readonly retryAfterMs: number | undefined;
}

/** How much one new observation counts. */
const WEIGHT_OF_NEWEST = 0.2;

/** So long a failure makes an upstream a doubtful choice. */
const RECENT_MS = 30_000;

const UNSEEN: UpstreamFacts = { firstTokenMs: undefined, successRate: 1 };

export class UpstreamHealth {
  readonly #facts = new Map<string, UpstreamFacts>();
  readonly #failedAt = new Map<string, number>();

  facts(upstream: string): UpstreamFacts {
    return this.#facts.get(upstream) ?? UNSEEN;
  }

  /** An attempt was answered: `ms` to the first content of a stream, else to the end of the body. */
  answered({ upstream: { name: upstream } }: AskedCandidate, { ms: firstTokenMs }: AttemptAnswer): void {
    const before = this.facts(upstream);
    this.#facts.set(upstream, {
      firstTokenMs: before.firstTokenMs === undefined ? firstTokenMs : blend(before.firstTokenMs, firstTokenMs),
      successRate: blend(before.successRate, 1),
    });
  }

  /** An attempt was not answered. What does not speak against the upstream, as a call that is wrong in itself, changes nothing. */
  failed({ upstream: { name: upstream } }: AskedCandidate, { outcome, verdict }: AttemptFailure): void {
    if (verdict !== 'next' || outcome === 'cancelled') return;
    const before = this.facts(upstream);
    this.#facts.set(upstream, { ...before, successRate: blend(before.successRate, 0) });
    this.#failedAt.set(upstream, performance.now());
  }

  /** In the last half minute. */
  hasFailedRecently(upstream: string): boolean {
    const at = this.#failedAt.get(upstream);
    return at !== undefined && performance.now() - at < RECENT_MS;
  }
}

function blend(before: number, newest: number): number {
  return before + (newest - before) * WEIGHT_OF_NEWEST;
}
