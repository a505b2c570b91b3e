/** What this process has seen of an upstream lately; strategies rank by it. */
export interface UpstreamFacts {
  /** Moving average of the time to the first content, in milliseconds; undefined while nothing was seen. */
  readonly firstTokenMs: number | undefined;
  /** Share of answered attempts, 1 while nothing was seen. */
  readonly successRate: number;
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

  answered(upstream: string, firstTokenMs: number): void {
    const before = this.facts(upstream);
    this.#facts.set(upstream, {
      firstTokenMs: before.firstTokenMs === undefined ? firstTokenMs : blend(before.firstTokenMs, firstTokenMs),
      successRate: blend(before.successRate, 1),
    });
  }

  failed(upstream: string): void {
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
