import { INPUT_METERS, outputTokens, tokensOf, type Usage } from '../catalog/usage';
import { madeOnce } from '../made-once';

/** The sums of an account's calls. */
export interface AccountSum {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
}

/** The name that stands for all accounts without a series of their own. */
export const OTHER = 'other';

/** The most accounts summed between two scrapes; the calls of further accounts count as `other`. */
const MOST_ACCOUNTS = 10_000;

export function noCalls(): AccountSum {
  return { calls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };
}

/** Adds up the calls of this process by account until the metrics take the sums. */
export class AccountSums {
  #sums = new Map<string, AccountSum>();

  add(accountId: string, usage: Usage | undefined, costE8: bigint): void {
    const sum = this.#sumOf(accountId);
    sum.calls += 1;
    if (usage === undefined) return;
    sum.inputTokens += tokensOf(usage, INPUT_METERS) ?? 0;
    sum.outputTokens += outputTokens(usage) ?? 0;
    sum.costUsd += Number(costE8) / 1e8;
  }

  take(): readonly (readonly [string, AccountSum])[] {
    const sums = [...this.#sums];
    this.#sums = new Map();
    return sums;
  }

  #sumOf(accountId: string): AccountSum {
    const isFull = this.#sums.size >= MOST_ACCOUNTS && !this.#sums.has(accountId);
    return madeOnce(this.#sums, isFull ? OTHER : accountId, noCalls);
  }
}

/** The sums of all calls of this process. */
export const ACCOUNT_SUMS = new AccountSums();
