import { setLimits } from '../ledger/key-limits';
import type { KeyLimits } from '../ledger/ledger';
import { formatUsd } from '../money';

/** The limits of a key as its row has them. */
export interface KeyLimitColumns {
  readonly limit_e8: bigint | null;
  readonly daily_limit_e8: bigint | null;
  readonly monthly_limit_e8: bigint | null;
  readonly calls_per_minute: bigint | null;
  readonly tokens_per_minute: bigint | null;
}

/** What is absent stays as it is; null removes. */
export type KeyLimitChanges = { readonly [K in keyof KeyLimits]?: KeyLimits[K] | null };

const NONE: KeyLimitColumns = {
  limit_e8: null,
  daily_limit_e8: null,
  monthly_limit_e8: null,
  calls_per_minute: null,
  tokens_per_minute: null,
};

export function changeLimits(changes: KeyLimitChanges, before: KeyLimitColumns = NONE): KeyLimitColumns {
  const count = (value: number | null | undefined, old: bigint | null) =>
    value === undefined ? old : value === null ? null : BigInt(value);
  const amount = (value: bigint | null | undefined, old: bigint | null) => (value === undefined ? old : value);
  return {
    limit_e8: amount(changes.limitE8, before.limit_e8),
    daily_limit_e8: amount(changes.dailyLimitE8, before.daily_limit_e8),
    monthly_limit_e8: amount(changes.monthlyLimitE8, before.monthly_limit_e8),
    calls_per_minute: count(changes.callsPerMinute, before.calls_per_minute),
    tokens_per_minute: count(changes.tokensPerMinute, before.tokens_per_minute),
  };
}

export function limitsOfRow(row: KeyLimitColumns): KeyLimits {
  const count = (value: bigint | null) => (value === null ? undefined : Number(value));
  return setLimits({
    limitE8: row.limit_e8 ?? undefined,
    dailyLimitE8: row.daily_limit_e8 ?? undefined,
    monthlyLimitE8: row.monthly_limit_e8 ?? undefined,
    callsPerMinute: count(row.calls_per_minute),
    tokensPerMinute: count(row.tokens_per_minute),
  });
}

/** As operators see them: amounts in USD, null for none. */
export function showLimits({ limitE8, dailyLimitE8, monthlyLimitE8, callsPerMinute, tokensPerMinute }: KeyLimits) {
  const usd = (amountE8: bigint | undefined) => (amountE8 === undefined ? null : formatUsd(amountE8));
  return {
    balanceLimit: usd(limitE8),
    dailyLimit: usd(dailyLimitE8),
    monthlyLimit: usd(monthlyLimitE8),
    callsPerMinute: callsPerMinute ?? null,
    tokensPerMinute: tokensPerMinute ?? null,
  };
}
