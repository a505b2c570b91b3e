import type { Credential } from '../catalog/credential';

/** Statuses that speak of the credential and not of the upstream. */
const REFUSED: ReadonlySet<number | undefined> = new Set([401, 403]);
export const RATE_LIMITED = 429;

/** Where a vendor does not say when a rate limit is over. */
const RATE_LIMITED_MS = 10_000;
const REST_AT_LEAST_MS = 1_000;
const REST_AT_MOST_MS = 3_600_000;
/** A refusal is doubled by the next one, up to so long. */
const REFUSED_MS = 60_000;
const REFUSED_AT_MOST_MS = 900_000;

export function isAboutCredential(status: number | undefined): boolean {
  return status === RATE_LIMITED || REFUSED.has(status);
}

/** What is known of one credential of an upstream. */
export class CredentialGauge {
  /** Not used before then, where there is another. */
  restsUntilMs = 0;
  /** With which status it was refused last; undefined once it has been answered since. */
  refusedWith: number | undefined;
  /** How often it was refused, by status. */
  readonly refusals = new Map<number, number>();
  #inARow = 0;
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  /** What was refused here: another value under the same name was not. */
  #value: string | undefined;

  constructor(readonly name: string) {}

  /** Refused or rate limited. Returns how long it rests from now on; undefined where that was known already. */
  refused({ value }: Credential, status: number, retryAfterMs: number | undefined, nowMs: number): number | undefined {
    this.refusals.set(status, (this.refusals.get(status) ?? 0) + 1);
    const wasResting = this.restsUntilMs > nowMs && this.#value === value;
    // Calls that were under way together are refused together.
    if (wasResting && this.refusedWith === status && status !== RATE_LIMITED) return undefined;
    this.#inARow = status === RATE_LIMITED ? 0 : this.#inARow + 1;
    const forMs =
      status === RATE_LIMITED
        ? Math.min(Math.max(retryAfterMs ?? RATE_LIMITED_MS, REST_AT_LEAST_MS), REST_AT_MOST_MS)
        : Math.min(REFUSED_MS * 2 ** (this.#inARow - 1), REFUSED_AT_MOST_MS);
    this.rest(status, forMs, nowMs);
    this.#value = value;
    return wasResting ? undefined : forMs;
  }

  /** As it was refused here, or as another node says. */
  rest(status: number, forMs: number, nowMs: number): void {
    this.refusedWith = status;
    this.#refusedAtMs = nowMs;
    this.restsUntilMs = Math.max(this.restsUntilMs, nowMs + Math.min(forMs, REST_AT_MOST_MS));
    this.#value = undefined;
  }

  /** It was shown at `startedMs`, and the upstream took it. */
  answered(startedMs: number): void {
    if (this.refusedWith !== undefined && startedMs > this.#refusedAtMs) this.restore();
  }

  restore(): void {
    this.refusedWith = undefined;
    this.restsUntilMs = 0;
    this.#inARow = 0;
  }

  /** It has a value and does not rest. */
  isUsable({ value }: Credential, nowMs: number): boolean {
    if (value === undefined) return false;
    const isReplaced = REFUSED.has(this.refusedWith) && this.#value !== undefined && this.#value !== value;
    return isReplaced || nowMs >= this.restsUntilMs;
  }
}
