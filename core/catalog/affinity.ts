/**
 * This file routes each session to the upstream or credential with the highest random number. Each number is a hash of both (rendezvous
 * hashing), adjusted by the caller for weights. The gateway stores nothing, and all nodes compute the same result. If an upstream or
 * credential is added or removed, only its own sessions move.
 */

/** Returns a 32-bit FNV-1a hash that identifies a session of this key. */
export function sessionHash(
  { accountId, keyId }: { readonly accountId: string; readonly keyId: string },
  session: string,
): number {
  return textHash(session, textHash(keyId, textHash(accountId)));
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

export function textHash(text: string, before = FNV_OFFSET): number {
  let hash = before;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME);
  return hash;
}

/** Returns a number from 0 to below 1 that depends only on the two given hashes. It mixes their bits as the last step of MurmurHash3 does. */
export function drawFor(session: number, drawn: number): number {
  let hash = session ^ drawn;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
