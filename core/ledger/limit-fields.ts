import { formatUsd } from '../base/money';
import type { LimitTexts, LimitWindow, SpendingLimits } from './scopes';

/** The kinds of limits: amounts of USD, and counts. `kept` is the type in the ledger, `shown` the type in request and answer bodies (USD as decimal text). */
interface Kinds {
  usd: { readonly kept: bigint; readonly shown: string };
  count: { readonly kept: number; readonly shown: number };
}

/** A limit of the key's spending in one window, or a limit per minute with its column in `api_keys` and its field in the key's hash in Redis. */
type KeyLimit = {
  /** The name of the limit in the bodies of keys; absent for a limit that only the budgets of the key show. */
  readonly name?: string;
} & (
  | { readonly kind: 'usd'; readonly window: LimitWindow }
  | { readonly kind: 'count'; readonly column: string; readonly field: string }
);

/**
 * The limits of an API key's spending and requests. An absent limit means no limit. This table is the source of the columns in Postgres,
 * the bodies, the OpenAPI document, the hash in Redis and what recovery writes. `scopes` and `rates`, each in TypeScript and in Lua, apply
 * the limits. Postgres has limits of spending as budgets of the key's scope, and limits per minute as columns of the key's row.
 */
const KEY_LIMITS = {
  limitE8: { kind: 'usd', window: 'total', name: 'balanceLimit' },
  // Spending limits per day, week and month, in UTC by the ledger's clock. A charge counts when it is settled.
  dailyLimitE8: { kind: 'usd', window: 'day', name: 'dailyLimit' },
  weeklyLimitE8: { kind: 'usd', window: 'week' },
  monthlyLimitE8: { kind: 'usd', window: 'month', name: 'monthlyLimit' },
  // The size of a token bucket that refills evenly within a minute. A key may make that many calls at once, and then one whenever a token returns.
  callsPerMinute: { kind: 'count', column: 'calls_per_minute', field: 'calls', name: 'callsPerMinute' },
  tokensPerMinute: { kind: 'count', column: 'tokens_per_minute', field: 'tokens', name: 'tokensPerMinute' },
} as const satisfies Record<string, KeyLimit>;

type Table = typeof KEY_LIMITS;
type Key = keyof Table;
type KindOf<K extends Key> = Kinds[Table[K]['kind']];

/** The limits with a name in the bodies of keys. */
type Named = { readonly [K in Key]: Table[K] extends { readonly name: string } ? K : never }[Key];

/** The limits with a column in the table `api_keys`. */
type Counted = { readonly [K in Key]: Table[K] extends { readonly column: string } ? K : never }[Key];

export type KeyLimits = { readonly [K in Key]?: KindOf<K>['kept'] | undefined };

/** Changes of limits. An absent limit stays as it is, and null removes it. */
export type KeyLimitChanges = { readonly [K in Key]?: KeyLimits[K] | null };

/** The limits of a key in Postgres: the budgets of its scope, and the columns of its row; null for no limit. */
export type KeyLimitColumns = { readonly [K in Counted as Table[K]['column']]: bigint | null } & {
  readonly limits: LimitTexts | null;
};

/** The limits of a key as bodies show them: amounts in USD, null for no limit. */
export type ShownKeyLimits = { readonly [K in Named as Table[K]['name']]: KindOf<K>['shown'] | null };

/** An object with one value for each limit of an API key. Its members have the limits' names in request and answer bodies. */
type ByLimitName<T extends Record<keyof Kinds, unknown>> = {
  readonly [K in Named as Table[K]['name']]: T[Table[K]['kind']];
};

const ROWS = Object.entries(KEY_LIMITS) as readonly [Key, Table[Key]][];

/** The limits that bodies of keys have. */
export const KEY_LIMIT_ROWS = ROWS.filter((row): row is [Named, Table[Named]] => 'name' in row[1]);

const COUNT_ROWS = ROWS.filter((row): row is [Counted, Table[Counted]] => 'column' in row[1]);

export const LIMIT_COLUMNS = COUNT_ROWS.map(([, { column }]) => column);

/** Returns the limits of a key's spending by their windows. */
export function spendingLimitsOf(limits: KeyLimits): SpendingLimits {
  const { limitE8: total, dailyLimitE8: day, weeklyLimitE8: week, monthlyLimitE8: month } = limits;
  return { total, day, week, month };
}

/** Returns every limit of an API key, with undefined for each one that `limits` lacks. A change then removes the limits that it does not name. */
export function limitsOf(limits: KeyLimits): KeyLimits {
  return Object.fromEntries(ROWS.map(([key]) => [key, limits[key]]));
}

/** Returns the limits that an API key has. `read` looks up one limit in a row of Postgres, a hash of Redis or a body. */
export function limitsFrom(
  read: (limit: Table[Key], key: Key) => bigint | number | string | null | undefined,
): KeyLimits {
  const found = ROWS.flatMap(([key, limit]) => {
    const kept = read(limit, key) ?? '';
    return kept === '' ? [] : [[key, limit.kind === 'usd' ? BigInt(kept) : Number(kept)]];
  });
  return Object.fromEntries(found);
}

export function limitsOfRow({ limits, ...columns }: KeyLimitColumns): KeyLimits {
  return limitsFrom((limit) => (limit.kind === 'usd' ? limits?.[limit.window] : columns[limit.column]));
}

/** Returns what Postgres has of a key's limits after these changes. */
export function changeLimits(changes: KeyLimitChanges, before?: KeyLimitColumns): KeyLimitColumns {
  const had = before === undefined ? {} : limitsOfRow(before);
  const after = (key: Key) => {
    const { [key]: value = had[key] ?? null } = changes;
    return value;
  };
  const limits = ROWS.flatMap(([key, limit]) => {
    const value = after(key);
    return limit.kind === 'usd' && value !== null ? [[limit.window, String(value)]] : [];
  });
  const columns = COUNT_ROWS.map(([key, { column }]) => {
    const value = after(key);
    return [column, value === null ? null : BigInt(value)];
  });
  return { ...Object.fromEntries(columns), limits: Object.fromEntries(limits) };
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
