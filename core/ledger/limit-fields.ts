import { formatUsd } from '../base/money';
import type { LimitWindow, SpendingLimits } from './scopes';

/** The kinds of limits: amounts of USD, and counts. `kept` is the type in the ledger, `shown` the type in request and answer bodies (USD as decimal text). */
interface Kinds {
  usd: { readonly kept: bigint; readonly shown: string };
  count: { readonly kept: number; readonly shown: number };
}

interface Limit {
  /** The limit's column in the table `api_keys`. */
  readonly column: string;
  /** The name of the limit of an API key in the bodies of requests and answers. */
  readonly name: string;
}

/** A limit of the key's scope, or a limit per minute with its field in the key's hash in Redis. */
type KeyLimit =
  | (Limit & { readonly kind: 'usd'; readonly window: LimitWindow })
  | (Limit & { readonly kind: 'count'; readonly field: string });

/**
 * The limits of an API key's spending and requests. An absent limit means no limit. This table is the source of the columns in Postgres,
 * the bodies, the OpenAPI document, the hash in Redis and what recovery writes. `scopes` and `rates`, each in TypeScript and in Lua, apply the limits.
 */
const KEY_LIMITS = {
  limitE8: { kind: 'usd', column: 'limit_e8', window: 'total', name: 'balanceLimit' },
  // Spending limits per day and per month, in UTC by the ledger's clock. A charge counts when it is settled.
  dailyLimitE8: { kind: 'usd', column: 'daily_limit_e8', window: 'day', name: 'dailyLimit' },
  monthlyLimitE8: { kind: 'usd', column: 'monthly_limit_e8', window: 'month', name: 'monthlyLimit' },
  // The size of a token bucket that refills evenly within a minute. A key may make that many calls at once, and then one whenever a token returns.
  callsPerMinute: { kind: 'count', column: 'calls_per_minute', field: 'calls', name: 'callsPerMinute' },
  tokensPerMinute: { kind: 'count', column: 'tokens_per_minute', field: 'tokens', name: 'tokensPerMinute' },
} as const satisfies Record<string, KeyLimit>;

type Table = typeof KEY_LIMITS;
type Key = keyof Table;
type KindOf<K extends Key> = Kinds[Table[K]['kind']];

export type KeyLimits = { readonly [K in Key]?: KindOf<K>['kept'] | undefined };

/** Changes of limits. An absent limit stays as it is, and null removes it. */
export type KeyLimitChanges = { readonly [K in Key]?: KeyLimits[K] | null };

/** The limits of a key as columns of its row in Postgres; null for no limit. */
export type KeyLimitColumns = { readonly [K in Key as Table[K]['column']]: bigint | null };

/** The limits of a key as bodies show them: amounts in USD, null for no limit. */
export type ShownKeyLimits = { readonly [K in Key as Table[K]['name']]: KindOf<K>['shown'] | null };

/** An object with one value for each limit of an API key. Its members have the limits' names in request and answer bodies. */
type ByLimitName<T extends Record<keyof Kinds, unknown>> = {
  readonly [K in Key as Table[K]['name']]: T[Table[K]['kind']];
};

export const KEY_LIMIT_ROWS = Object.entries(KEY_LIMITS) as readonly [Key, Table[Key]][];

export const LIMIT_COLUMNS = KEY_LIMIT_ROWS.map(([, { column }]) => column);

/** Returns the limits of a key's spending by their windows. */
export function spendingLimitsOf({ limitE8, dailyLimitE8, monthlyLimitE8 }: KeyLimits): SpendingLimits {
  return { total: limitE8, day: dailyLimitE8, month: monthlyLimitE8 };
}

/** Returns every limit of an API key, with undefined for each one that `limits` lacks. A change then removes the limits that it does not name. */
export function limitsOf(limits: KeyLimits): KeyLimits {
  return Object.fromEntries(KEY_LIMIT_ROWS.map(([key]) => [key, limits[key]]));
}

/** Returns the limits that an API key has. `read` looks up one limit in a row of Postgres, a hash of Redis or a body. */
export function limitsFrom(
  read: (limit: Table[Key], key: Key) => bigint | number | string | null | undefined,
): KeyLimits {
  const found = KEY_LIMIT_ROWS.flatMap(([key, limit]) => {
    const kept = read(limit, key) ?? '';
    return kept === '' ? [] : [[key, limit.kind === 'usd' ? BigInt(kept) : Number(kept)]];
  });
  return Object.fromEntries(found);
}

export function limitsOfRow(row: KeyLimitColumns): KeyLimits {
  return limitsFrom(({ column }) => row[column]);
}

export function changeLimits(changes: KeyLimitChanges, before?: KeyLimitColumns): KeyLimitColumns {
  const after = KEY_LIMIT_ROWS.map(([key, { column }]) => {
    const { [key]: value = before?.[column] ?? null } = changes;
    return [column, value === null ? null : BigInt(value)];
  });
  return Object.fromEntries(after);
}

export function showLimits(limits: KeyLimits): ShownKeyLimits {
  const shown = KEY_LIMIT_ROWS.map(([key, { name }]) => {
    const value = limits[key] ?? null;
    return [name, typeof value === 'bigint' ? formatUsd(value) : value];
  });
  return Object.fromEntries(shown);
}

/** Returns an object with one member for each limit. Each member has the value that `its` gives for the limit's kind (USD or count). */
export function byLimitName<const T extends Record<keyof Kinds, unknown>>(its: T): ByLimitName<T> {
  return Object.fromEntries(KEY_LIMIT_ROWS.map(([, { name, kind }]) => [name, its[kind]])) as ByLimitName<T>;
}
