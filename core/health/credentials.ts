import { drawFor, textHash } from '../catalog/affinity';
import type { Upstream } from '../catalog/catalog';
import type { Credential } from '../catalog/upstream';

/** HTTP statuses with which an upstream refuses the credential; they say nothing about the upstream itself. */
const REFUSED: ReadonlySet<number | undefined> = new Set([401, 403]);
export const RATE_LIMITED = 429;

/** How long a rate-limited credential rests (is not used) if the vendor's answer names no time. */
const RATE_LIMITED_MS = 10_000;
const MIN_REST_MS = 1_000;
const MAX_REST_MS = 3_600_000;
/** How long a refused credential rests (is not used). Each further refusal in a row doubles it, up to `MAX_REFUSED_MS`. */
const REFUSED_MS = 60_000;
const MAX_REFUSED_MS = 900_000;

export function isAboutCredential(status: number | undefined): boolean {
  return status === RATE_LIMITED || REFUSED.has(status);
}

/** What this process knows of one credential of an upstream. */
export class CredentialGauge {
  /** Until when the credential rests: it is used only if the upstream has no other usable credential. */
  restsUntilMs = 0;
  /** The status of the last refusal; undefined if the upstream has accepted the credential since then. */
  refusedWith: number | undefined;
  readonly refusals = new Map<number, number>();
  #inARow = 0;
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  /** The credential's value when it was refused. The refusal does not apply to a new value that an operator has set under the same name. */
  #value: string | undefined;

  constructor(readonly name: string) {}

  /** Records a refusal or a rate limit. Returns how long the credential rests (is not used) from now on; undefined if it was already resting. */
  refused({ value }: Credential, status: number, retryAfterMs: number | undefined, nowMs: number): number | undefined {
    this.refusals.set(status, (this.refusals.get(status) ?? 0) + 1);
    const wasResting = this.restsUntilMs > nowMs && this.#value === value;
    // Attempts that run at the same time are refused at the same time, so their refusals count as one.
    if (wasResting && this.refusedWith === status && status !== RATE_LIMITED) return undefined;
    this.#inARow = status === RATE_LIMITED ? 0 : this.#inARow + 1;
    const forMs =
      status === RATE_LIMITED
        ? Math.min(Math.max(retryAfterMs ?? RATE_LIMITED_MS, MIN_REST_MS), MAX_REST_MS)
        : Math.min(REFUSED_MS * 2 ** (this.#inARow - 1), MAX_REFUSED_MS);
    this.rest(status, forMs, nowMs);
    this.#value = value;
    return wasResting ? undefined : forMs;
  }

  /** Stops using the credential for a while (lets it rest) after a refusal that this or another node received. */
  rest(status: number, forMs: number, nowMs: number): void {
    this.refusedWith = status;
    this.#refusedAtMs = nowMs;
    this.restsUntilMs = Math.max(this.restsUntilMs, nowMs + Math.min(forMs, MAX_REST_MS));
    this.#value = undefined;
  }

  /** Uses the credential again if the upstream accepted it in an attempt that began (at `startedMs`) after the last refusal. */
  answered(startedMs: number): void {
    if (this.refusedWith !== undefined && startedMs > this.#refusedAtMs) this.restore();
  }

  restore(): void {
    this.refusedWith = undefined;
    this.restsUntilMs = 0;
    this.#inARow = 0;
  }

  /** Returns whether the credential has a value and does not rest (is not excluded for a while after a refusal). */
  isUsable({ value }: Credential, nowMs: number): boolean {
    if (value === undefined) return false;
    const isReplaced = REFUSED.has(this.refusedWith) && this.#value !== undefined && this.#value !== value;
    return isReplaced || nowMs >= this.restsUntilMs;
  }
}

/** The part of `UpstreamHealth` that choosing a credential needs. */
interface Known {
  now(): number;
  upstream(name: string): { credential(name: string): CredentialGauge };
}

interface Choosing {
  /** The hash of the session. A session keeps its credential, because prompt caches belong to the credential's account. undefined: a random credential. */
  readonly session: number | undefined;
  /** Names of credentials that have already failed this call. */
  readonly tried?: ReadonlySet<string> | undefined;
}

/** Returns the credential for an attempt: a usable one, chosen at random by weight. If none is usable, returns the one whose rest ends first. */
export function chooseCredential(upstream: Upstream, health: Known, { session, tried }: Choosing): Credential {
  const { credential, credentials } = upstream;
  if (credentials.length === 1) return credential;
  const usable = usableCredentials(upstream, health, tried);
  if (usable.length > 0) return highest(usable, (each) => lotOf(each, session));
  const gauge = health.upstream(upstream.name);
  const present = credentials.filter(({ value }) => value !== undefined);
  return highest(present.length > 0 ? present : credentials, ({ name }) => -gauge.credential(name).restsUntilMs);
}

/** Returns the credentials that neither rest nor have failed this call. */
export function usableCredentials(
  { name, credentials }: Upstream,
  health: Known,
  tried?: ReadonlySet<string>,
): readonly Credential[] {
  const gauge = health.upstream(name);
  const nowMs = health.now();
  return credentials.filter(
    (each) => tried?.has(each.name) !== true && gauge.credential(each.name).isUsable(each, nowMs),
  );
}

/** Returns a credential's random number for the choice; the highest number wins. Weights of 3 and 1 win three choices and one choice out of four. */
function lotOf({ name, weight }: Credential, session: number | undefined): number {
  const drawn = session === undefined ? Math.random() : drawFor(session, textHash(name));
  return drawn ** (1 / weight);
}

function highest(credentials: readonly Credential[], rank: (credential: Credential) => number): Credential {
  const ranked = credentials.map((credential) => ({ credential, rank: rank(credential) }));
  return ranked.reduce((best, each) => (each.rank > best.rank ? each : best)).credential;
}
