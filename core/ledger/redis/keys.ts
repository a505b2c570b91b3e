import { ALL_SHARDS, shardOf } from '../shard';

/** The prefixes of the ledger's keys in Redis. One hash tag per shard keeps all keys of an account in one slot of a Cluster. */
const PREFIXES = ALL_SHARDS.map((shard) => `{s${String(shard).padStart(3, '0')}}:`);

/** Returns the prefix `{sNNN}:` of a shard. */
export function shardPrefix(shard: number): string {
  const prefix = PREFIXES[shard];
  if (prefix === undefined) throw new RangeError(`no such shard: ${shard}`);
  return prefix;
}

/** Returns the prefix `{sNNN}:` of an account's shard. */
export function accountPrefix(accountId: string): string {
  return shardPrefix(shardOf(accountId));
}

/** The key that exists while the index of API keys is complete. Without it, an API key that is not found may exist. */
export const KEY_INDEX = 'keyindex';

/** The counter that a write increments before it waits for replicas. */
export const REPLICATED = 'replicated';

/** Returns the key of an API key's index entry, by the SHA-256 of its secret. The entry's value is "accountId keyId". */
export function keyIndexEntry(hash: string): string {
  return `key:${hash}`;
}
