import { setTimeout as sleep } from 'node:timers/promises';
import { duplicateRedis, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';

/** The Redis channel that notifies nodes at once when other operations need money from their allowances. Their next report's answer repeats this. */
const CHANNEL = 'tollgate:recall';

/** Publishes recalls of money to all nodes over Redis, and receives them. */
export class RecallChannel {
  readonly #redis: RedisClient;
  #listening: RedisClient | undefined;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Publishes a recall. A node that misses it finds it in the answer to its next report. */
  publish(accountId: string): void {
    this.#redis.publish(CHANNEL, accountId).catch(() => undefined);
  }

  onRecall(listener: (accountId: string) => void): void {
    const listening = duplicateRedis(this.#redis, {});
    listening.on('error', () => undefined); // The first connection reports that Redis is not reachable.
    listening.on('message', (_channel: string, accountId: string) => listener(accountId));
    listening.on('ready', () => void listening.subscribe(CHANNEL).catch(() => undefined));
    this.#listening = listening;
  }

  close(): void {
    this.#listening?.disconnect();
  }
}

interface RecallsOptions {
  /** How long an operation waits for recalled money, in ms; longer than any lease. */
  readonly waitMs: number;
  /** Publishes the recall to all nodes at once. */
  publish(accountId: string): void;
  /** Counts the live allowances of an account, or of one of its keys, and prevents their renewal. */
  countLive(accountId: string, keyId?: string): Promise<number>;
}

const FIRST_PAUSE_MS = 2;
const MAX_PAUSE_MS = 50;

/** Recalls money from the allowances of nodes. All operations that wait for the same money share one recall. */
export class Recalls {
  readonly #options: RecallsOptions;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: RecallsOptions) {
    this.#options = options;
  }

  /**
   * Repeats an operation until it has an outcome, because money in allowances may be missing, and recalls that money before each attempt.
   * @throws LedgerUnavailable if nodes do not answer in time
   */
  async whileRecalling<T>(accountId: string, ask: () => Promise<T | undefined>): Promise<T> {
    const until = performance.now() + this.#options.waitMs;
    while (performance.now() < until) {
      await this.allBack(accountId);
      const answer = await ask();
      if (answer !== undefined) return answer;
    }
    throw new LedgerUnavailable('other nodes did not return money held in advance in time');
  }

  /** Resolves when no node admits calls any more from an allowance that this account, or this key, had before. */
  allBack(accountId: string, keyId?: string): Promise<void> {
    const name = `${accountId} ${keyId}`;
    const known = this.#underWay.get(name);
    if (known !== undefined) return known;
    const recall = this.#recall(accountId, keyId).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, recall);
    return recall;
  }

  async #recall(accountId: string, keyId: string | undefined): Promise<void> {
    const { waitMs, publish, countLive } = this.#options;
    publish(accountId);
    const until = performance.now() + waitMs;
    let pauseMs = FIRST_PAUSE_MS;
    while (performance.now() < until) {
      if ((await countLive(accountId, keyId)) === 0) return;
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
    throw new LedgerUnavailable('nodes that hold money in advance did not return it in time');
  }
}
