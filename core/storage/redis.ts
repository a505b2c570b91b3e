import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { getOrInsert } from '../base/collections';
import { metrics } from '../base/metrics';
import { StartFailure } from '../base/start-failure';
import { parseRedisUrl, type RedisAddress } from './redis-address';
import { readBeforeGivingUp } from './redis-patience';

readBeforeGivingUp();

/** How long a Redis command may wait for its answer. With this limit a client learns within 300 ms that the ledger is unavailable. */
export const COMMAND_TIMEOUT_MS = 250;

/** How long a connection to Redis may be silent after a command before the gateway replaces the connection. */
const SILENCE_MS = 1_000;
const OLDEST_MAJOR_VERSION = 7;

/** A single Redis, the master that sentinels name, or a Cluster. All keys of one ledger command share a hash tag, as a Cluster requires. */
export type RedisClient = Redis | Cluster;

/** The settings of one connection; a Cluster has one connection to each of its nodes. */
const CONNECTION = {
  commandTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: 1_000,
  socketTimeout: SILENCE_MS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const;

const waitBeforeAttempt = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1_000);

/** Settings for a Redis Cluster. While a slot moves or a replica is promoted, ioredis retries a command until the command's timeout. */
const CLUSTER = {
  maxRedirections: 8,
  retryDelayOnFailover: 30,
  retryDelayOnClusterDown: 30,
  retryDelayOnTryAgain: 15,
  retryDelayOnMoved: 0,
  slotsRefreshTimeout: 1_000,
  slotsRefreshInterval: 5_000,
};

/**
 * Connects the gateway's Redis client, which fails closed. It queues no commands while it is disconnected. It sends no command twice,
 * except one that a Cluster has refused. It reconnects forever: first after 50 ms, later every second.
 * @throws StartFailure when `url` is not valid
 */
export function connectRedis(url: string, log: Logger): RedisClient {
  const client = counted(open(parseRedisUrl(url)));
  reportChanges(client, describe(parseRedisUrl(url)), log);
  return client;
}

function open(address: RedisAddress): RedisClient {
  if (address.kind === 'single') return new Redis(address.url, { ...CONNECTION, retryStrategy: waitBeforeAttempt });
  const { nodes, tls, username, password } = address;
  const access = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: {} } : {}),
  };
  if (address.kind === 'cluster') {
    return new Cluster([...nodes], {
      ...CLUSTER,
      enableOfflineQueue: false,
      clusterRetryStrategy: waitBeforeAttempt,
      redisOptions: { ...CONNECTION, ...access },
    });
  }
  const { master, sentinelPassword } = address;
  return new Redis({
    ...CONNECTION,
    ...access,
    retryStrategy: waitBeforeAttempt,
    sentinelRetryStrategy: waitBeforeAttempt,
    sentinels: [...nodes],
    name: master,
    enableTLSForSentinelMode: tls,
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
  });
}

type DuplicateOptions = Pick<
  RedisOptions,
  'commandTimeout' | 'socketTimeout' | 'enableOfflineQueue' | 'autoResubscribe'
>;

/** Opens another client of the same Redis, for work that may wait longer than a call. */
export function duplicateRedis(client: RedisClient, options: DuplicateOptions): RedisClient {
  if (client instanceof Redis) return counted(client.duplicate(options));
  const { enableOfflineQueue = false, ...connection } = options;
  const redisOptions = { ...client.options.redisOptions, ...connection };
  return counted(client.duplicate([], { enableOfflineQueue, redisOptions }));
}

/** How often each of this program's own commands was sent and has failed, by name. */
const commands = new Map<string, { sent: number; failed: number }>();

function counted<T extends RedisClient>(client: T): T {
  const sender: Pick<Redis, 'sendCommand'> = client;
  const send = sender.sendCommand.bind(client);
  sender.sendCommand = (command, ...rest) => {
    const counts = getOrInsert(commands, command.name, () => ({ sent: 0, failed: 0 }));
    counts.sent += 1;
    command.promise.catch(() => {
      counts.failed += 1;
    });
    return send(command, ...rest);
  };
  return client;
}

new Counter({
  name: 'tollgate_redis_commands_total',
  help: 'Commands to Redis; `failed` if Redis rejected them or did not answer in time.',
  labelNames: ['command', 'outcome'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const [command, { sent, failed }] of commands) {
      this.inc({ command, outcome: 'sent' }, sent);
      this.inc({ command, outcome: 'failed' }, failed);
    }
  },
});

/** Returns the single Redis, or the nodes of a Cluster that accept writes. */
export function mastersOf(client: RedisClient): readonly Redis[] {
  return client instanceof Redis ? [client] : client.nodes('master');
}

/** Logs one line when the connection is lost and one when it is back, not one per attempt. */
function reportChanges(redis: RedisClient, address: string, log: Logger): void {
  addresses.set(redis, address);
  let lost = false;
  redis.on('error', (error: Error) => {
    if (!lost)
      log.error(
        { address, reason: error.message },
        'Redis is unreachable; calls are refused until it is reachable again',
      );
    lost = true;
  });
  redis.on('ready', () => {
    if (lost) log.info({ address }, 'Redis is reachable again');
    lost = false;
  });
}

/**
 * Waits until Redis answers, and checks that it can keep a ledger.
 * @throws {Error} that names the address, the reason and what to do; never a password.
 */
export async function checkRedis(redis: RedisClient, withinMs = 3_000): Promise<void> {
  const address = describeAddress(redis);
  await waitUntilReady(redis, withinMs).catch((reason: Error) => {
    throw new StartFailure(
      `Redis at ${address} is not reachable (${reason.message}). Start it, or correct REDIS_URL; ` +
        'without REDIS_URL and DATABASE_URL Tollgate runs with its embedded stores.',
    );
  });
  for (const master of mastersOf(redis)) await checkMaster(master, address);
}

async function checkMaster(redis: Redis, address: string): Promise<void> {
  const facts = readInfo(await redis.info());
  const version = facts.get('redis_version') ?? '0';
  if (Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION) {
    throw new StartFailure(`Redis at ${address} is version ${version}. The ledger's scripts need Redis 7 or newer.`);
  }
  const policy = facts.get('maxmemory_policy') ?? 'noeviction';
  if (policy.startsWith('allkeys-')) {
    throw new StartFailure(
      `Redis at ${address} may evict balances: set its maxmemory-policy to noeviction, not ${policy}.`,
    );
  }
}

function waitUntilReady(redis: RedisClient, withinMs: number): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    let reason = new Error(`no answer within ${withinMs} ms`);
    const noteReason = (error: Error) => {
      reason = error;
    };
    const finish = (then: () => void) => () => {
      clearTimeout(timer);
      redis.off('error', noteReason).off('ready', succeed);
      then();
    };
    const succeed = finish(resolve);
    const timer = setTimeout(
      finish(() => reject(reason)),
      withinMs,
    );
    redis.on('error', noteReason).on('ready', succeed);
  });
}

function readInfo(info: string): ReadonlyMap<string, string> {
  return new Map(info.split('\r\n').map((line) => [line.split(':', 1)[0] ?? '', line.slice(line.indexOf(':') + 1)]));
}

const addresses = new WeakMap<RedisClient, string>();

function describeAddress(redis: RedisClient): string {
  return addresses.get(redis) ?? 'an address of its own';
}

/** Returns hosts and ports, never a user or a password. */
function describe(address: RedisAddress): string {
  if (address.kind === 'single') {
    const { hostname, port, pathname } = new URL(address.url);
    return hostname === '' ? pathname : `${hostname}:${port || '6379'}`;
  }
  const nodes = address.nodes.map(({ host, port }) => `${host}:${port}`).join(', ');
  return address.kind === 'cluster' ? `${nodes} (Cluster)` : `${nodes} (sentinels of ${address.master})`;
}
