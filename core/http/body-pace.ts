import { fail, type GatewayError } from '../errors';

/** How fast a request's body must arrive; docs/contract.md, section 10. */
export interface PaceLimits {
  /** The whole body has to be here by then. */
  readonly totalMs: number;
  /** How long a body may be slower than `minBytesPerSecond`. */
  readonly slowMs: number;
  readonly minBytesPerSecond: number;
}

/** Of our own API. */
export const PACE_LIMITS: PaceLimits = { totalMs: 120_000, slowMs: 30_000, minBytesPerSecond: 1_024 };

/** How often the pace is looked at while a body may be slow. */
const LOOKS = 6;

/** Watches that a body arrives in time and not too slowly. */
export class BodyPace {
  receivedBytes = 0;

  readonly #limits: PaceLimits;
  readonly #timer: NodeJS.Timeout;
  readonly #refuse: (error: GatewayError) => void;
  /** What had been received at each look. */
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
