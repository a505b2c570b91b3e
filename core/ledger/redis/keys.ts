import { ALL_SHARDS, shardOf } from '../shard';

/** The prefixes of the ledger's keys in Redis. One hash tag per shard keeps all keys of an account in one slot of a Cluster. */
const PREFIXES = ALL_SHARDS.map((shard) => `{s${String(shard).padStart(3, '0')}}:`);

/** Returns the prefix `{sNNN}:` of a shard. */
export function shardPrefix(shard: number): string {
  const prefix = PREFIXES[shard];
  if (prefix === undefined) throw new RangeError(`the ledger has no shard with the number ${shard}`);
  return prefix;
}

/** Returns the prefix `{sNNN}:` of an account's shard. */
export function accountPrefix(accountId: string): string {
  return shardPrefix(shardOf(accountId));
}

/** The Redis key that exists while the index of API keys is complete. Without it, the index may lack entries of existing API keys. */
export const KEY_INDEX = 'keyindex';

/** The Redis key of a counter. The ledger increments the counter before it waits for replicas. */
export const REPLICATED = 'replicated';

/** Returns the Redis key of an API key's index entry, by the SHA-256 of the API key's secret. The entry's value is "accountId keyId". */
export function keyIndexEntry(hash: string): string {
  return `key:${hash}`;
}
