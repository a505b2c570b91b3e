import { Redis } from 'ioredis';

/** What a Redis did since its start. */
export interface RedisCounts {
  /** Scripts it ran: what the ledger asks for. */
  readonly scripts: number;
  /** Reads from its connections that brought commands: commands written together are one. */
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
