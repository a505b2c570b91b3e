import { setTimeout as sleep } from 'node:timers/promises';
/**
 * A process that ships the outbox until it is killed: `drain-process.ts <redisUrl> <databaseUrl>`. It reports the start of each round to its parent.
 */

import { shipShards } from '../../core/ledger/outbox/ship';
import { RedisLedger } from '../../core/ledger/redis/redis-ledger';
import { ALL_SHARDS } from '../../core/ledger/shard';
import { openPostgres } from '../../core/storage/database';
import { connectRedis } from '../../core/storage/redis';
import { quiet } from './databases';

async function main(redisUrl: string, databaseUrl: string): Promise<void> {
  const ledger = new RedisLedger({ redis: connectRedis(redisUrl, quiet) });
  const database = openPostgres(databaseUrl, { log: quiet, maxConnections: 1 });
  const readOutbox: typeof ledger.readOutbox = async (shards, most) => {
    const heads = await ledger.readOutbox(shards, most);
    if (heads.size > 0) process.send?.('begun');
    return heads;
  };
  const telling = new Proxy(ledger, {
    get: (target, name) => {
      const member: unknown = name === 'readOutbox' ? readOutbox : Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  for (;;) {
    await shipShards({ ledger: telling, database, log: quiet }, ALL_SHARDS).catch(() => undefined);
    await sleep(5);
  }
}

const [redisUrl = '', databaseUrl = ''] = process.argv.slice(2);
process.once('disconnect', () => process.exit());
void main(redisUrl, databaseUrl);
