/**
 * A moving average over observations. The newest counts `weight`, and more the longer nothing was seen before it: after one
 * half-life of silence it counts half, whatever was known.
 */
export class MovingEstimate {
  value: number | undefined;
  /** How far an observation is from `value`, on average. The first one alone may be all chance. */
  deviation = 0;
  /** Of the newest observation; on the clock of whoever notes. */
  at = Number.NEGATIVE_INFINITY;
  readonly #weight: number;
  readonly #halfLifeMs: number;

  /** `first`: what is believed before anything was seen. */
  constructor(weight: number, halfLifeMs = Number.POSITIVE_INFINITY, first?: number) {
    this.#weight = weight;
    this.#halfLifeMs = halfLifeMs;
    this.value = first;
  }

  /** `times` observations with this mean. */
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

/** What is left of 1 after this time. */
export function halved(elapsedMs: number, halfLifeMs: number): number {
  return elapsedMs <= 0 || halfLifeMs === Number.POSITIVE_INFINITY ? 1 : 2 ** (-elapsedMs / halfLifeMs);
}
