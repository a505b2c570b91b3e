import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { StartFailure } from './start-failure';

/** A command that has no answer by now has none: the caller is told within 300 ms that the ledger is unavailable. */
export const COMMAND_TIMEOUT_MS = 250;

/** A connection that was written to and says nothing for this long is replaced. */
const SILENCE_MS = 1_000;
const OLDEST_MAJOR_VERSION = 7;

/**
 * Our client: it fails closed. Nothing is queued while there is no connection, nothing is sent a second time by itself, and
 * it reconnects for ever, after 50 ms at first and every second at last. Commands use keys with one hash tag, so that a
 * Cluster can take its place.
 */
export function connectRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: 1_000,
    socketTimeout: SILENCE_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1_000),
  });
  reportChanges(redis, log);
  return redis;
}

/** One line when it is lost and one when it is back, not one per attempt. */
function reportChanges(redis: Redis, log: Logger): void {
  const address = describeAddress(redis);
  let lost = false;
  redis.on('error', (error: Error) => {
    if (!lost) log.error({ address, reason: error.message }, 'Redis is not reachable; calls are refused until it is');
    lost = true;
  });
  redis.on('ready', () => {
    if (lost) log.info({ address }, 'Redis is reachable again');
    lost = false;
  });
}

/**
 * Waits until Redis answers, and looks whether it can keep a ledger.
 * @throws {Error} that names the address, the reason and what to do; never a password.
 */
export async function checkRedis(redis: Redis, withinMs = 3_000): Promise<void> {
  const address = describeAddress(redis);
  await waitUntilReady(redis, withinMs).catch((reason: Error) => {
    throw new StartFailure(
      `Redis at ${address} is not reachable (${reason.message}). Start it, or correct REDIS_URL; ` +
        'without REDIS_URL and DATABASE_URL Tollgate runs with its embedded stores.',
    );
  });
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

function waitUntilReady(redis: Redis, withinMs: number): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    let reason = new Error(`no answer within ${withinMs} ms`);
    const noteReason = (error: Error) => {
      reason = error;
    };
    const finish = (settle: () => void) => () => {
      clearTimeout(timer);
      redis.off('error', noteReason).off('ready', succeed);
      settle();
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

function describeAddress(redis: Redis): string {
  const { host, port, path } = redis.options;
  return path ?? `${host}:${port}`;
}
