/** Who may show an API key, and until when. Times are those of the clock of the node that is asked. */
export interface KeyAccess {
  readonly expiresAtMs?: number | undefined;
  /** Addresses and ranges that it may be shown from. */
  readonly addresses?: readonly string[] | undefined;
  /** Of a key whose secret was replaced: hashes of the one in force and of the one before it, which ends then. */
  readonly secrets?:
    | { readonly current: string; readonly previous: string; readonly previousUntilMs: number }
    | undefined;
}

/** A key as its row has what decides that. */
export interface AccessColumns {
  readonly hash: string;
  readonly expires_at: Date | null;
  readonly allowed_addresses: readonly string[] | null;
  readonly previous_hash: string | null;
  readonly previous_until: Date | null;
}

/** `access` of a key's settings; absent for a key that may be shown from anywhere at any time, and never had another secret. */
export function accessOf(row: AccessColumns): { readonly access?: KeyAccess } {
  const { hash: current, expires_at, allowed_addresses, previous_hash: previous, previous_until } = row;
  const isReplaced = previous !== null && previous_until !== null;
  if (expires_at === null && allowed_addresses === null && !isReplaced) return {};
  const access = {
    expiresAtMs: expires_at?.getTime(),
    addresses: allowed_addresses ?? undefined,
    secrets: isReplaced ? { current, previous, previousUntilMs: previous_until.getTime() } : undefined,
  };
  return { access };
}

/** The hashes that a key is found by. */
export function hashesOf(hash: string, access: KeyAccess | undefined): readonly string[] {
  return access?.secrets === undefined ? [hash] : [hash, access.secrets.previous];
}
