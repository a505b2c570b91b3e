/** The addresses from which, and the times until which, an API key may be used. The clock of the node that receives the request decides. */
export interface KeyAccess {
  readonly expiresAtMs?: number | undefined;
  /** For a key of a team: until when the identity provider of its member has confirmed the member. Absent without such a provider. */
  readonly memberUntilMs?: number | undefined;
  /** The addresses and ranges from which the key may be used; undefined for all. */
  readonly addresses?: readonly string[] | undefined;
  /** For a key whose secret was replaced: the hashes of the current secret and of the previous one. The previous one expires at `previousUntilMs`. */
  readonly secrets?:
    | { readonly current: string; readonly previous: string; readonly previousUntilMs: number }
    | undefined;
}

/** The columns of a key's database row that restrict its use. */
export interface AccessColumns {
  readonly hash: string;
  readonly expires_at: Date | null;
  readonly team_id: string | null;
  /** Until when the key's member is confirmed; it stops only keys of teams. */
  readonly member_until: Date | null;
  readonly allowed_addresses: readonly string[] | null;
  readonly previous_hash: string | null;
  readonly previous_until: Date | null;
}

/** Returns the `access` of a key's settings. It is absent for a key without restrictions whose secret was never replaced. */
export function accessOf(row: AccessColumns): { readonly access?: KeyAccess } {
  const { hash: current, expires_at, allowed_addresses, previous_hash: previous, previous_until } = row;
  const memberUntil = row.team_id === null ? null : row.member_until;
  const isReplaced = previous !== null && previous_until !== null;
  if (expires_at === null && memberUntil === null && allowed_addresses === null && !isReplaced) return {};
  const access = {
    expiresAtMs: expires_at?.getTime(),
    ...(memberUntil !== null && { memberUntilMs: memberUntil.getTime() }),
    addresses: allowed_addresses ?? undefined,
    secrets: isReplaced ? { current, previous, previousUntilMs: previous_until.getTime() } : undefined,
  };
  return { access };
}

/** For this long after its expiry, a replaced secret is answered with the error that it has expired. After that, it is answered like an unknown key. */
const EXPLAINED_MS = 86_400_000;

interface Key {
  readonly hash: string;
  readonly status: 'active' | 'revoked';
  readonly settings: { readonly access?: KeyAccess | undefined };
}

/**
 * Returns the hashes under which the index has an API key. `untilMs` is the time when a hash expires; undefined if it never does. A revoked
 * key has no hashes.
 */
export function secretsOf({ hash, status, settings: { access } }: Key) {
  if (status === 'revoked') return [];
  const current = { hash, untilMs: undefined };
  const { secrets } = access ?? {};
  return secrets === undefined
    ? [current]
    : [current, { hash: secrets.previous, untilMs: secrets.previousUntilMs + EXPLAINED_MS }];
}

/** Returns the hashes under which the index had this API key when `before` were its access rules, and no longer has it now. */
export function deadHashes(key: Key, before: KeyAccess | undefined): readonly string[] {
  const { secrets } = key.settings.access ?? {};
  const known = [key.hash, secrets?.previous, before?.secrets?.current, before?.secrets?.previous];
  const found = new Set(secretsOf(key).map(({ hash }) => hash));
  return known.filter((hash) => hash !== undefined && !found.has(hash)) as string[];
}
