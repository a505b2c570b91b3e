import type { Knex } from 'knex';
import { log } from '../base/log';
import { StartFailure } from '../base/start-failure';
import { checkRedis, connectRedis, type RedisClient } from '../storage/redis';
import type { AllowanceStore } from './allowances/allowance-store';
import { type Ledger, LedgerUnavailable, type TagReader } from './ledger';
import { MemoryLedger } from './memory-ledger';
import { type Shipper, type ShipperOptions, startShipper } from './outbox/shipper';
import { startShipperThread } from './outbox/shipper-thread';
import { RedisLedger } from './redis/redis-ledger';
import type { ReplicaPolicy } from './redis/replicas';
import { readTagStates } from './scope-rows';

/** Refuses to start with only one of Redis and Postgres. Two processes that share Postgres, each with its own ledger, would spend the same money. */
export function refuseHalfOfTheStores({ REDIS_URL: redis = '', DATABASE_URL: database = '' }: NodeJS.ProcessEnv): void {
  if ((redis === '') === (database === '')) return;
  const [set, missing] = redis === '' ? ['DATABASE_URL', 'REDIS_URL'] : ['REDIS_URL', 'DATABASE_URL'];
  throw new StartFailure(`${set} is set, but ${missing} is not: set both, or neither to use the embedded stores.`);
}

/** The opened ledger. `store` grants allowances (money that a node holds in advance); it is undefined for the embedded ledger, which needs none. */
interface OpenedLedger {
  readonly ledger: Ledger;
  readonly store: (Ledger & AllowanceStore) | undefined;
  readonly redis: RedisClient | undefined;
}

/** Opens the ledger. Without a Redis URL, the ledger runs in this process: the embedded default. */
export async function openLedger(
  redisUrl: string | undefined,
  replicas: ReplicaPolicy,
  database: Knex,
): Promise<OpenedLedger> {
  const readTags: TagReader = (scopes) =>
    readTagStates(database, scopes).catch((cause) => {
      throw new LedgerUnavailable('what tags have spent cannot be read from Postgres', { cause });
    });
  if (redisUrl === undefined || redisUrl === '') {
    if (replicas.waitReplicas > 0)
      throw new StartFailure(
        'system.config.yml: ledger.waitReplicas is set, but the embedded ledger has no replicas: remove it, or set REDIS_URL.',
      );
    return { ledger: new MemoryLedger({ readTags }), store: undefined, redis: undefined };
  }
  const redis = connectRedis(redisUrl, log);
  await checkRedis(redis);
  const ledger = new RedisLedger({ redis, replicas: { ...replicas, log }, readTags });
  return { ledger, store: ledger, redis };
}

/** Opens the shipper: in a thread of its own with Redis and Postgres, or on the main thread with the embedded stores. */
export function openShipper(options: ShipperOptions, env: NodeJS.ProcessEnv): Shipper {
  const { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl } = env;
  if (!redisUrl || !databaseUrl) return startShipper(options);
  const onWritten = (rids: readonly string[]) => options.onWritten?.(rids);
  return startShipperThread({ redisUrl, databaseUrl, log, onWritten });
}
