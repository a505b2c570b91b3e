import { drawFor, textHash } from '../catalog/affinity';
import type { Upstream } from '../catalog/catalog';
import type { Credential } from '../catalog/credential';
import type { UpstreamGauge } from './gauge';

/** The part of `UpstreamHealth` that the choice of a credential needs. */
interface Known {
  now(): number;
  upstream(name: string): Pick<UpstreamGauge, 'credential'>;
}

interface Choosing {
  /** The hash of the session: a session keeps its credential, because prompt caches belong to the credential's account. undefined: random. */
  readonly session: number | undefined;
  /** Names of credentials that have already failed this call. */
  readonly tried?: ReadonlySet<string> | undefined;
}

/** Returns the credential for an attempt: a usable one, drawn by weight. If none is usable, the one whose rest ends first. */
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

/** Returns the number that a credential draws; the highest wins. With weights 3 and 1, the first of two wins three times out of four. */
function lotOf({ name, weight }: Credential, session: number | undefined): number {
  const drawn = session === undefined ? Math.random() : drawFor(session, textHash(name));
  return drawn ** (1 / weight);
}

function highest(credentials: readonly Credential[], rank: (credential: Credential) => number): Credential {
  const ranked = credentials.map((credential) => ({ credential, rank: rank(credential) }));
  return ranked.reduce((best, each) => (each.rank > best.rank ? each : best)).credential;
}
