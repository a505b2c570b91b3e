/**
 * A moving average over observations. The newest counts `weight`, and more after a silence: after one half-life without
 * observations it counts at least half.
 */
export class MovingEstimate {
  value: number | undefined;
  /** Mean distance between an observation and `value`. After the first observation it is as large as that one, which may be pure chance. */
  deviation = 0;
  /** When the newest observation was made, on the caller's clock. */
  at = Number.NEGATIVE_INFINITY;
  readonly #weight: number;
  readonly #halfLifeMs: number;

  /** `first`: the value before the first observation. */
  constructor(weight: number, halfLifeMs = Number.POSITIVE_INFINITY, first?: number) {
    this.#weight = weight;
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
    const weight = Math.max(1 - (1 - this.#weight) ** times, forgotten);
    this.deviation += (Math.abs(observed - value) - this.deviation) * this.#weight;
    this.value = value + (observed - value) * weight;
  }

  forget(): void {
    this.value = undefined;
    this.deviation = 0;
    this.at = Number.NEGATIVE_INFINITY;
  }
}

/** Returns what exponential decay leaves of 1 after `elapsedMs`. */
export function halved(elapsedMs: number, halfLifeMs: number): number {
  return elapsedMs <= 0 || halfLifeMs === Number.POSITIVE_INFINITY ? 1 : 2 ** (-elapsedMs / halfLifeMs);
}
