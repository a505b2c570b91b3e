import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { getOrInsert } from '../base/collections';
import { type Loop, onFirstFailure, startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import { INPUT_METERS, outputTokens, tokensOf, type Usage } from '../catalog/usage';

/** The sums of an account's calls since the last scrape. */
interface AccountSum {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
}

/** The label value for all accounts that have no metric series of their own. */
export const OTHER = 'other';

/** The most accounts summed between two scrapes; the calls of further accounts count as `other`. */
const MAX_ACCOUNTS = 10_000;

function noCalls(): AccountSum {
  return { calls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };
}

/** Sums the calls of this process by account until the next scrape takes the sums. */
class AccountSums {
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
    const isFull = this.#sums.size >= MAX_ACCOUNTS && !this.#sums.has(accountId);
    return getOrInsert(this.#sums, isFull ? OTHER : accountId, noCalls);
  }
}

/** The sums of all accounts with calls in this process. */
export const ACCOUNT_SUMS = new AccountSums();

const ASKED_EVERY_MS = 60_000;

/** The accounts that spent most in this hour and the previous one, highest first. */
const SPENDERS = `
  SELECT account_id FROM usage_sums
  WHERE grouped_by = 'none' AND hour >= date_bin('1 hour', now() - interval '1 hour', '2000-01-01 00:00:00+00')
  GROUP BY account_id ORDER BY sum(cost_e8) DESC, sum(calls) DESC LIMIT :most`;

interface TopAccountsOptions {
  readonly database: Knex;
  readonly log: Logger;
  /** The maximum number of accounts that have metric series of their own. */
  readonly most: number;
  readonly everyMs?: number;
}

/**
 * Gives the accounts that spend most their own metric series; all other accounts count as `other`. The loop reads these accounts from
 * Postgres, so that all processes choose the same ones. If fewer accounts have spent anything, the remaining series go to the first
 * accounts that call.
 */
export function startTopAccounts({ database, log, most, everyMs = ASKED_EVERY_MS }: TopAccountsOptions): Loop {
  let shown = new Set<string>();
  const registers = [metrics];
  const count = () => {
    for (const [accountId, sum] of ACCOUNT_SUMS.take()) {
      if (accountId !== OTHER && shown.size < most) shown.add(accountId);
      const account = shown.has(accountId) ? accountId : OTHER;
      calls.inc({ account }, sum.calls);
      tokens.inc({ account, direction: 'input' }, sum.inputTokens);
      tokens.inc({ account, direction: 'output' }, sum.outputTokens);
      cost.inc({ account }, sum.costUsd);
    }
  };
  const calls = new Counter({
    name: 'tollgate_account_calls_total',
    help: 'Calls with a valid key of the accounts that spend most; `other` sums up all other accounts.',
    labelNames: ['account'],
    registers,
    // Prometheus reads this metric first, so its `collect` function updates all three metrics of accounts.
    collect: count,
  });
  const tokens = new Counter({
    name: 'tollgate_account_tokens_total',
    help: 'Tokens charged to the accounts that spend most.',
    labelNames: ['account', 'direction'],
    registers,
  });
  const cost = new Counter({
    name: 'tollgate_account_cost_usd_total',
    help: 'Amount in USD charged to the accounts that spend most.',
    labelNames: ['account'],
    registers,
  });

  const choose = async () => {
    const { rows } = await database.raw<{ rows: { account_id: string }[] }>(SPENDERS, { most });
    const first = new Set([...rows.map((row) => row.account_id), ...shown].slice(0, most));
    for (const account of shown) {
      if (first.has(account)) continue;
      for (const each of [calls, cost]) each.remove({ account });
      for (const direction of ['input', 'output']) tokens.remove({ account, direction });
    }
    shown = first;
  };
  return startLoop(choose, {
    everyMs,
    whenFailed: onFirstFailure((error) =>
      log.warn(
        { reason: String(error) },
        'the accounts that spend most could not be read from Postgres; the metric series keep the previous accounts',
      ),
    ),
  });
}
