import { Cluster } from 'ioredis';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../../metrics';
import { StartFailure } from '../../start-failure';
import type { LuaScript } from '../../storage/lua';
import { COMMAND_TIMEOUT_MS, duplicateRedis, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';
import { RedisConnection } from './connection';
import { REPLICATED } from './keys';

/** How sure it must be that what the ledger acknowledged outlives its Redis. */
export interface ReplicaPolicy {
  /** How many replicas have it before anybody is told; 0 waits for none. */
  readonly waitReplicas: number;
  readonly waitTimeoutMs: number;
  /** Fewer had it in time: the ledger is not available, or the log says so and it goes on. */
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
 * Waits until replicas have what Redis has answered so far. WAIT covers what its own connection wrote, and holds up what comes
 * behind it there. So it has a connection to itself and writes a mark first: Redis numbers all writes in one order, and a mark that is
 * sent after a script was answered comes after it. One WAIT is under way at a time; all who ask meanwhile share the next.
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

  /** @throws LedgerUnavailable when too few have it and the policy is to refuse */
  confirm(): Promise<void> {
    // One that is under way may have begun before the caller was answered.
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

  /** As the ledger's other connections: one to another Redis says nothing about what this one wrote. */
  trust(id: string): void {
    this.#connection.trust(id);
  }

  close(): void {
    this.#connection.redis.disconnect();
  }
}
