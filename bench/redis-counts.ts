import { Redis } from 'ioredis';

/** Counters of a Redis since its start. */
export interface RedisCounts {
  /** The number of Lua scripts that Redis ran. Every request of the ledger is one script. */
  readonly scripts: number;
  /** The number of socket reads in which Redis received commands. Pipelined commands that arrive together count as one read. */
  readonly reads: number;
}

export async function countAtRedis(url: string): Promise<RedisCounts> {
  const redis = new Redis(url);
  try {
    const info = await redis.info('stats', 'commandstats');
    const sum = (pattern: RegExp) => [...info.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0);
    return {
      scripts: sum(/^cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/gm),
      reads: sum(/^total_reads_processed:(\d+)/gm),
    };
  } finally {
    redis.disconnect();
  }
}
