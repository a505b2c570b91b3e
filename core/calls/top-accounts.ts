import { Counter, type Registry } from 'prom-client';
import { madeOnce } from '../made-once';
import { type AccountSum, noCalls, OTHER } from './account-sums';

/** The time after which an account's spending counts half for its rank. */
const HALF_LIFE_MS = 3_600_000;
/** How much more a newcomer must spend to replace an account, so that series do not come and go. */
const LEAD = 1.25;
/** The weight of a call in the rank, so that calls without cost count too. */
const RANK_OF_CALL_USD = 1e-9;
/** The most accounts with a rank. Above this number the lowest of those that never had a series are forgotten. */
const MOST_RANKED = 10_000;

interface Ranked {
  readonly accountId: string;
  rank: number;
  isTop: boolean;
  /** The sums of the time in which the account had a series. They continue if the account comes back, because a counter never falls. */
  counted: AccountSum | undefined;
}

/**
 * Gives series of their own to the accounts that spend most. The other accounts count as `other`. Calls of an account before it
 * had a series stay there.
 */
export class TopAccounts {
  readonly #most: number;
  readonly #nowMs: () => number;
  #ranked = new Map<string, Ranked>();
  #other = noCalls();
  #rankedAtMs: number;

  constructor(most: number, nowMs: () => number = () => performance.now()) {
    this.#most = most;
    this.#nowMs = nowMs;
    this.#rankedAtMs = nowMs();
  }

  add(sums: Iterable<readonly [string, AccountSum]>): void {
    const given = [...sums];
    this.#decay();
    for (const [accountId, { calls, costUsd }] of given) {
      if (accountId !== OTHER) this.#of(accountId).rank += costUsd + calls * RANK_OF_CALL_USD;
    }
    this.#choose();
    for (const [accountId, sum] of given) {
      const ranked = this.#ranked.get(accountId);
      if (ranked?.isTop !== true) this.#other = addTo(this.#other, sum);
      else ranked.counted = addTo(ranked.counted ?? noCalls(), sum);
    }
    this.#forget();
  }

  /** Returns the sums of each account with a series, and of all others together. */
  *counted(): Generator<readonly [string, AccountSum]> {
    for (const { accountId, isTop, counted } of this.#ranked.values())
      if (isTop && counted !== undefined) yield [accountId, counted];
    yield [OTHER, this.#other];
  }

  #of(accountId: string): Ranked {
    return madeOnce(this.#ranked, accountId, () => ({ accountId, rank: 0, isTop: false, counted: undefined }));
  }

  #decay(): void {
    const nowMs = this.#nowMs();
    const share = 0.5 ** ((nowMs - this.#rankedAtMs) / HALF_LIFE_MS);
    this.#rankedAtMs = nowMs;
    for (const ranked of this.#ranked.values()) ranked.rank *= share;
  }

  #choose(): void {
    this.#byRank().forEach((ranked, at) => {
      ranked.isTop = at < this.#most;
    });
  }

  #byRank(): Ranked[] {
    const rankOf = ({ rank, isTop }: Ranked) => (isTop ? rank * LEAD : rank);
    return [...this.#ranked.values()].sort((one, other) => rankOf(other) - rankOf(one));
  }

  #forget(): void {
    if (this.#ranked.size <= MOST_RANKED) return;
    const kept = this.#byRank().filter(({ counted }, at) => counted !== undefined || at < MOST_RANKED / 2);
    this.#ranked = new Map(kept.map((ranked) => [ranked.accountId, ranked]));
  }
}

function addTo(sum: AccountSum, more: AccountSum): AccountSum {
  return {
    calls: sum.calls + more.calls,
    inputTokens: sum.inputTokens + more.inputTokens,
    outputTokens: sum.outputTokens + more.outputTokens,
    costUsd: sum.costUsd + more.costUsd,
  };
}

/** Registers the metrics of the accounts that spend most. `take` returns the sums since its last call. */
export function exposeAccounts(
  accounts: TopAccounts,
  registry: Registry,
  take: () => Iterable<readonly [string, AccountSum]>,
): void {
  const registers = [registry];
  new Counter({
    name: 'tollgate_account_calls_total',
    help: 'Calls with a valid key of the accounts that spend most; `other` sums up all other accounts.',
    labelNames: ['account'],
    registers,
    collect() {
      accounts.add(take());
      this.reset();
      for (const [account, { calls }] of accounts.counted()) this.inc({ account }, calls);
    },
  });
  new Counter({
    name: 'tollgate_account_tokens_total',
    help: 'Tokens charged to the accounts that spend most.',
    labelNames: ['account', 'direction'],
    registers,
    collect() {
      this.reset();
      for (const [account, { inputTokens, outputTokens }] of accounts.counted()) {
        this.inc({ account, direction: 'input' }, inputTokens);
        this.inc({ account, direction: 'output' }, outputTokens);
      }
    },
  });
  new Counter({
    name: 'tollgate_account_cost_usd_total',
    help: 'Amount in USD charged to the accounts that spend most.',
    labelNames: ['account'],
    registers,
    collect() {
      this.reset();
      for (const [account, { costUsd }] of accounts.counted()) this.inc({ account }, costUsd);
    },
  });
}
