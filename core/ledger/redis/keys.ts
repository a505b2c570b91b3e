import { ALL_SHARDS, shardOf } from '../shard';

/** Names of the ledger's keys. One hash tag per shard keeps everything of an account in one slot of a Cluster. */
const PREFIXES = ALL_SHARDS.map((shard) => `{s${String(shard).padStart(3, '0')}}:`);

/** `{sNNN}:` of a shard. */
export function shardPrefix(shard: number): string {
  const prefix = PREFIXES[shard];
  if (prefix === undefined) throw new RangeError(`no such shard: ${shard}`);
  return prefix;
}

/** `{sNNN}:` of the shard an account lives in. */
export function accountPrefix(accountId: string): string {
  return shardPrefix(shardOf(accountId));
}

/** There while the index of keys is whole: without it a key that is not found may exist. */
export const KEY_INDEX = 'keyindex';

/** Counted on when it is waited for replicas. */
export const REPLICATED = 'replicated';

/** Who a key belongs to, by its SHA-256: "accountId keyId". */
export function keyIndexEntry(hash: string): string {
  return `key:${hash}`;
}
