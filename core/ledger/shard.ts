import { crc32 } from 'node:zlib';
import { SHARDS } from './ledger';

/** Returns the shard of an account. It is fixed forever, because it is part of every key's name. */
export function shardOf(accountId: string): number {
  return crc32(accountId) % SHARDS;
}

export const ALL_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);
