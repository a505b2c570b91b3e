import { setTimeout as sleep } from 'node:timers/promises';
import { duplicateRedis, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';
import type { ScriptAnswer } from './connection';

export interface RecallsOptions {
  readonly redis: RedisClient;
  /** How long money is waited for: longer than any lease. */
  readonly waitMs: number;
  /** Counts the live allowances of an account, or of one of its keys, and keeps them from being renewed. */
  countLive(accountId: string, keyId?: string): Promise<number>;
}

/** Nodes that have money of an account in advance are told by this channel that it is wanted. They would see it at their next report. */
const CHANNEL = 'tollgate:recall';

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;

/** Calls back what nodes have in advance. Recalls of one account are one: all who wait for it share it. */
export class Recalls {
  readonly #options: RecallsOptions;
  readonly #underWay = new Map<string, Promise<void>>();
  #listening: RedisClient | undefined;

  constructor(options: RecallsOptions) {
    this.#options = options;
  }

  /** Repeats what was answered `recalling` until it is not. @throws LedgerUnavailable when nodes do not answer in time */
  async whileRecalling(accountId: string, ask: () => Promise<ScriptAnswer>): Promise<ScriptAnswer> {
    const until = performance.now() + this.#options.waitMs;
    while (performance.now() < until) {
      await this.allBack(accountId);
      const answer = await ask();
      if (answer[0] !== 'recalling') return answer;
    }
    throw new LedgerUnavailable('money that is with other nodes did not come back in time');
  }

  /** Resolves when no node admits calls from an allowance of this account, or of this key, that it had before. */
  allBack(accountId: string, keyId?: string): Promise<void> {
    const name = `${accountId} ${keyId}`;
    const known = this.#underWay.get(name);
    if (known !== undefined) return known;
    const recall = this.#recall(accountId, keyId).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, recall);
    return recall;
  }

  async #recall(accountId: string, keyId: string | undefined): Promise<void> {
    const { waitMs, countLive } = this.#options;
    this.publish(accountId);
    const until = performance.now() + waitMs;
    let pauseMs = FIRST_PAUSE_MS;
    while (performance.now() < until) {
      if ((await countLive(accountId, keyId)) === 0) return;
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
    throw new LedgerUnavailable('nodes that have money in advance did not give it back in time');
  }

  /** Tells nodes at once. A hint: those that do not hear it are told by their next report. */
  publish(accountId: string): void {
    this.#options.redis.publish(CHANNEL, accountId).catch(() => undefined);
  }

  onRecall(listener: (accountId: string) => void): void {
    const listening = duplicateRedis(this.#options.redis, {});
    listening.on('error', () => undefined); // The first connection reports that Redis is not reachable.
    listening.on('message', (_channel: string, accountId: string) => listener(accountId));
    listening.on('ready', () => void listening.subscribe(CHANNEL).catch(() => undefined));
    this.#listening = listening;
  }

  close(): void {
    this.#listening?.disconnect();
  }
}
