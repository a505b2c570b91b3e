import { Cluster } from 'ioredis';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../../base/metrics';
import { StartFailure } from '../../base/start-failure';
import type { LuaScript } from '../../storage/lua';
import { COMMAND_TIMEOUT_MS, duplicateRedis, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';
import { RedisConnection } from './connection';
import { REPLICATED } from './keys';

/** How many replicas must acknowledge a change, so that it survives the loss of its Redis. */
export interface ReplicaPolicy {
  /** How many replicas must acknowledge a change before the caller gets its answer; 0 waits for none. */
  readonly waitReplicas: number;
  readonly waitTimeoutMs: number;
  /** What happens if too few replicas acknowledge in time: the ledger is unavailable (`refuse`), or it logs an error and continues (`warn`). */
  readonly onTooFew: 'refuse' | 'warn';
}

const tooFew = new Counter({
  name: 'tollgate_ledger_too_few_replicas_total',
  help: 'How often fewer replicas than ledger.waitReplicas acknowledged a write of the ledger in time.',
  registers: [metrics],
});

const NOT_IN_A_CLUSTER =
  'ledger.waitReplicas of system.config.yml is for one Redis, or one behind sentinels. Let the primaries of a Cluster refuse writes ' +
  'by themselves while their replicas are gone (min-replicas-to-write).';

/**
 * Waits until replicas have every write that Redis has acknowledged so far. WAIT covers only the writes of its own connection, and delays
 * later commands there. This class therefore has its own connection, and writes a mark first. Redis orders all writes, so a mark that
 * follows a script's answer comes after the script's writes. One WAIT runs at a time, and all callers that arrive meanwhile share the next
 * one.
 */
export class Replicas {
  readonly #connection: RedisConnection;
  readonly #mark: LuaScript;
  readonly #policy: ReplicaPolicy;
  readonly #log: Logger;
  #underWay: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  #isComplaining = false;

  constructor(options: { redis: RedisClient; mark: LuaScript; policy: ReplicaPolicy; log: Logger }) {
    const { redis, mark, policy, log } = options;
    if (redis instanceof Cluster) throw new StartFailure(NOT_IN_A_CLUSTER);
    const own = duplicateRedis(redis, { commandTimeout: policy.waitTimeoutMs + COMMAND_TIMEOUT_MS });
    own.on('error', () => undefined); // The first connection reports that Redis is not reachable.
    this.#connection = new RedisConnection(own, []);
    this.#mark = mark;
    this.#policy = policy;
    this.#log = log;
  }

  /**
   * Resolves when enough replicas have every write acknowledged so far.
   * @throws LedgerUnavailable if too few have them and the policy is `refuse`
   */
  confirm(): Promise<void> {
    // A running WAIT may have begun before this caller's change. The caller therefore waits for the next WAIT, together with all callers that arrive
    // meanwhile.
    this.#next ??= this.#underWay.then(() => {
      this.#next = undefined;
      const waiting = this.#wait();
      this.#underWay = waiting.catch(() => undefined);
      return waiting;
    });
    return this.#next;
  }

  async #wait(): Promise<void> {
    const { waitReplicas, waitTimeoutMs, onTooFew } = this.#policy;
    const count = await this.#ask().catch((error: unknown) => String(error));
    if (typeof count === 'number' && count >= waitReplicas) {
      if (this.#isComplaining)
        this.#log.info({ replicas: count }, 'enough replicas of Redis acknowledge writes of the ledger again');
      this.#isComplaining = false;
      return;
    }
    tooFew.inc();
    if (!this.#isComplaining)
      this.#log.error(
        { replicas: count, waitReplicas, waitTimeoutMs, onTooFew },
        'too few replicas of Redis acknowledge writes of the ledger in time',
      );
    this.#isComplaining = true;
    if (onTooFew === 'refuse')
      throw new LedgerUnavailable(
        `${count} of ${waitReplicas} replicas acknowledged the write within ${waitTimeoutMs} ms`,
      );
  }

  async #ask(): Promise<number> {
    const { waitReplicas, waitTimeoutMs } = this.#policy;
    const [, count] = await this.#connection.ask((redis) =>
      Promise.all([redis.eval(this.#mark.source, 1, REPLICATED), redis.call('WAIT', waitReplicas, waitTimeoutMs)]),
    );
    return Number(count);
  }

  /** Trusts the Redis that the ledger's other connections trust. Writes of those connections are in that Redis only, so WAIT must run there. */
  trust(id: string): void {
    this.#connection.trust(id);
  }

  close(): void {
    this.#connection.redis.disconnect();
  }
}
