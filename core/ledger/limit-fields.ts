import { formatUsd } from '../base/money';

/** The kinds of limits, and the types of a limit in the ledger (`kept`) and in bodies (`shown`): decimal USD or a number. */
interface Kinds {
  usd: { readonly kept: bigint; readonly shown: string };
  count: { readonly kept: number; readonly shown: number };
}

interface Limit {
  readonly kind: keyof Kinds;
  /** The limit's column in the table `api_keys`. */
  readonly column: string;
  /** The limit's field in the key's hash in Redis. */
  readonly field: string;
  /** The limit's name in request and answer bodies. */
  readonly name: string;
}

/**
 * The limits of a key's spending and of its requests; an absent one means no limit. Columns, bodies, the OpenAPI document, the
 * hash in Redis and what recovery writes are made from this table. `key-limits.ts` and `key-limits.lua` apply the limits.
 */
const KEY_LIMITS = {
  limitE8: { kind: 'usd', column: 'limit_e8', field: 'limit', name: 'balanceLimit' },
  // Spending limits per day and per month, in UTC by the ledger's clock. A charge counts when it is settled.
  dailyLimitE8: { kind: 'usd', column: 'daily_limit_e8', field: 'day_limit', name: 'dailyLimit' },
  monthlyLimitE8: { kind: 'usd', column: 'monthly_limit_e8', field: 'month_limit', name: 'monthlyLimit' },
  // The size of a token bucket that refills evenly within a minute. A key may make that many calls at once, and then one whenever a token returns.
  callsPerMinute: { kind: 'count', column: 'calls_per_minute', field: 'calls', name: 'callsPerMinute' },
  tokensPerMinute: { kind: 'count', column: 'tokens_per_minute', field: 'tokens', name: 'tokensPerMinute' },
} as const satisfies Record<string, Limit>;

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

/** One value for each limit, by its name in bodies. */
type ByLimitName<T extends Record<keyof Kinds, unknown>> = {
  readonly [K in Key as Table[K]['name']]: T[Table[K]['kind']];
};

export const KEY_LIMIT_ROWS = Object.entries(KEY_LIMITS) as readonly [Key, Table[Key]][];

/** The fields of all limits in Redis, in the order of the table. */
export const LIMIT_FIELDS = KEY_LIMIT_ROWS.map(([, { field }]) => field);
export const LIMIT_COLUMNS = KEY_LIMIT_ROWS.map(([, { column }]) => column);

/** Returns every limit, undefined where `limits` has none, so that a change removes the limits that it does not name. */
export function limitsOf(limits: KeyLimits): KeyLimits {
  return Object.fromEntries(KEY_LIMIT_ROWS.map(([key]) => [key, limits[key]]));
}

/** Returns the limits that are set. `read` looks up one limit in its source. */
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

/** Returns the limit fields of a key's hash in Redis with their texts; an empty text means no limit. */
export function limitTexts(limits: KeyLimits): readonly (readonly [field: Table[Key]['field'], text: string])[] {
  return KEY_LIMIT_ROWS.map(([key, { field }]) => [field, limits[key]?.toString() ?? '']);
}

export function showLimits(limits: KeyLimits): ShownKeyLimits {
  const shown = KEY_LIMIT_ROWS.map(([key, { name }]) => {
    const value = limits[key] ?? null;
    return [name, typeof value === 'bigint' ? formatUsd(value) : value];
  });
  return Object.fromEntries(shown);
}

/** Returns for each limit, by its name in bodies, the value that belongs to the limit's kind. */
export function byLimitName<const T extends Record<keyof Kinds, unknown>>(its: T): ByLimitName<T> {
  return Object.fromEntries(KEY_LIMIT_ROWS.map(([, { name, kind }]) => [name, its[kind]])) as ByLimitName<T>;
}
