import { setTimeout as sleep } from 'node:timers/promises';
import { duplicateRedis, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';
import type { ScriptAnswer } from './connection';

/** The Redis channel that asks nodes to return money from their allowances (money held in advance). The answer to a node's next report asks again. */
const CHANNEL = 'tollgate:recall';

/** Sends recalls to all nodes over Redis, and receives them. A recall asks nodes to return money that they hold in advance for an account. */
export class RecallChannel {
  readonly #redis: RedisClient;
  #listening: RedisClient | undefined;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Asks all nodes to return the money that they hold in advance for this account. A node that misses this finds it in the answer to its next report. */
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
  /** How long an operation waits until nodes have returned their money, in ms. This is longer than the lease of any allowance of a node. */
  readonly waitMs: number;
  /** Asks all nodes at once to return the money that they hold in advance for this account. */
  publish(accountId: string): void;
  /** Counts the unexpired allowances (money that nodes hold in advance) of a scope (see scopes.ts). It also prevents their renewal. */
  countLive(accountId: string, scope: string): Promise<number>;
}

const FIRST_PAUSE_MS = 2;
const MAX_PAUSE_MS = 50;

/** Recalls money from the allowances of nodes (money that they hold in advance). All operations that wait for the same money share one recall. */
export class Recalls {
  readonly #options: RecallsOptions;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: RecallsOptions) {
    this.#options = options;
  }

  /**
   * Repeats an operation until it has an outcome. Before each attempt it recalls money from allowances of nodes, because the operation may
   * need that money. `first` is its answer that money is recalled, with the scope whose allowances must come back.
   * @throws LedgerUnavailable if nodes do not answer in time
   */
  async whileRecalling(
    accountId: string,
    first: ScriptAnswer,
    ask: () => Promise<ScriptAnswer>,
  ): Promise<ScriptAnswer> {
    const until = performance.now() + this.#options.waitMs;
    for (let answer = first; performance.now() < until; ) {
      await this.allBack(accountId, answer[2] ?? `a:${accountId}`);
      answer = await ask();
      if (answer[0] !== 'recalling') return answer;
    }
    throw new LedgerUnavailable('other nodes did not return money held in advance in time');
  }

  /** Resolves when no node admits calls any more from the allowances (money held in advance) that this scope of an account had before. */
  allBack(accountId: string, scope: string): Promise<void> {
    const name = `${accountId} ${scope}`;
    const known = this.#underWay.get(name);
    if (known !== undefined) return known;
    const recall = this.#recall(accountId, scope).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, recall);
    return recall;
  }

  async #recall(accountId: string, scope: string): Promise<void> {
    const { waitMs, publish, countLive } = this.#options;
    publish(accountId);
    const until = performance.now() + waitMs;
    let pauseMs = FIRST_PAUSE_MS;
    while (performance.now() < until) {
      if ((await countLive(accountId, scope)) === 0) return;
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
    throw new LedgerUnavailable('nodes that hold money in advance did not return it in time');
  }
}
