import { fail, type GatewayError } from '../base/errors';

/** The limits for how fast a request body must arrive; docs/contract.md, section 10. */
export interface PaceLimits {
  readonly totalMs: number;
  /** How long a body may arrive at less than `minBytesPerSecond`. */
  readonly slowMs: number;
  readonly minBytesPerSecond: number;
}

/** The limits for requests to the gateway's own API (all but model calls). */
export const PACE_LIMITS: PaceLimits = { totalMs: 120_000, slowMs: 30_000, minBytesPerSecond: 1_024 };

/** How many times within `slowMs` the rate of a slow body is measured. */
const LOOKS = 6;

/** Aborts a body that does not arrive in time, or arrives too slowly. */
export class BodyPace {
  receivedBytes = 0;

  readonly #limits: PaceLimits;
  readonly #timer: NodeJS.Timeout;
  readonly #refuse: (error: GatewayError) => void;
  /** The number of received bytes at each measurement. */
  readonly #looks: number[] = [0];

  constructor(limits: PaceLimits, refuse: (error: GatewayError) => void) {
    this.#limits = limits;
    this.#refuse = refuse;
    this.#timer = setInterval(() => this.#look(), limits.slowMs / LOOKS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { totalMs, slowMs, minBytesPerSecond } = this.#limits;
    this.#looks.push(this.receivedBytes);
    const looked = this.#looks.length - 1;
    const passedMs = (looked * slowMs) / LOOKS;
    const before = this.#looks[looked - LOOKS];
    const isSlow = before !== undefined && this.receivedBytes - before < (minBytesPerSecond * slowMs) / 1_000;
    if (passedMs >= totalMs || isSlow) this.#refuse(fail('BODY_TIMEOUT'));
  }
}
