import { formatUsd } from '../money';

/** What limits are kept as, and what bodies have: decimal USD, or a number. */
interface Kinds {
  usd: { readonly kept: bigint; readonly shown: string };
  count: { readonly kept: number; readonly shown: number };
}

interface Limit {
  readonly kind: keyof Kinds;
  /** Of api_keys. */
  readonly column: string;
  /** Of the key's hash in Redis. */
  readonly field: string;
  /** In bodies. */
  readonly name: string;
}

/**
 * What a key may spend and ask; a key has no limit where one is absent. Columns, bodies, the OpenAPI document, the hash in Redis and what
 * recovery writes are made of this table. What a limit does stands in `key-limits.ts` and `key-limits.lua`.
 */
export const KEY_LIMITS = {
  limitE8: { kind: 'usd', column: 'limit_e8', field: 'limit', name: 'balanceLimit' },
  // In a day and a month, UTC, by the ledger's clock. A charge counts when it is settled.
  dailyLimitE8: { kind: 'usd', column: 'daily_limit_e8', field: 'day_limit', name: 'dailyLimit' },
  monthlyLimitE8: { kind: 'usd', column: 'monthly_limit_e8', field: 'month_limit', name: 'monthlyLimit' },
  // A bucket of this size that fills again evenly: so many at once, then one after the other.
  callsPerMinute: { kind: 'count', column: 'calls_per_minute', field: 'calls', name: 'callsPerMinute' },
  tokensPerMinute: { kind: 'count', column: 'tokens_per_minute', field: 'tokens', name: 'tokensPerMinute' },
} as const satisfies Record<string, Limit>;

type Table = typeof KEY_LIMITS;
type Key = keyof Table;
type KindOf<K extends Key> = Kinds[Table[K]['kind']];

export type KeyLimits = { readonly [K in Key]?: KindOf<K>['kept'] | undefined };

/** What is absent stays as it is; null removes. */
export type KeyLimitChanges = { readonly [K in Key]?: KeyLimits[K] | null };

/** The limits of a key as its row has them. */
export type KeyLimitColumns = { readonly [K in Key as Table[K]['column']]: bigint | null };

/** As bodies have them: amounts in USD, null for none. */
export type ShownKeyLimits = { readonly [K in Key as Table[K]['name']]: KindOf<K>['shown'] | null };

/** Something for each limit by its name in bodies. */
export type ByLimitName<T extends Record<keyof Kinds, unknown>> = {
  readonly [K in Key as Table[K]['name']]: T[Table[K]['kind']];
};

export const LIMITS = Object.entries(KEY_LIMITS) as readonly [Key, Table[Key]][];

/** In the order of the table. */
export const LIMIT_FIELDS = LIMITS.map(([, { field }]) => field);
export const LIMIT_COLUMNS = LIMITS.map(([, { column }]) => column);

/** All of them, so that a change takes away what it does not name. */
export function limitsOf(limits: KeyLimits): KeyLimits {
  return Object.fromEntries(LIMITS.map(([key]) => [key, limits[key]]));
}

/** Returns those that are set; `read` finds a limit where it is kept. */
export function limitsFrom(
  read: (limit: Table[Key], key: Key) => bigint | number | string | null | undefined,
): KeyLimits {
  const found = LIMITS.flatMap(([key, limit]) => {
    const kept = read(limit, key) ?? '';
    return kept === '' ? [] : [[key, limit.kind === 'usd' ? BigInt(kept) : Number(kept)]];
  });
  return Object.fromEntries(found);
}

export function limitsOfRow(row: KeyLimitColumns): KeyLimits {
  return limitsFrom(({ column }) => row[column]);
}

export function changeLimits(changes: KeyLimitChanges, before?: KeyLimitColumns): KeyLimitColumns {
  const after = LIMITS.map(([key, { column }]) => {
    const { [key]: value = before?.[column] ?? null } = changes;
    return [column, value === null ? null : BigInt(value)];
  });
  return Object.fromEntries(after);
}

/** Fields of a key's hash in Redis with their texts, empty for no limit. */
export function limitTexts(limits: KeyLimits): readonly (readonly [field: Table[Key]['field'], text: string])[] {
  return LIMITS.map(([key, { field }]) => [field, limits[key]?.toString() ?? '']);
}

export function showLimits(limits: KeyLimits): ShownKeyLimits {
  const shown = LIMITS.map(([key, { name }]) => {
    const value = limits[key] ?? null;
    return [name, typeof value === 'bigint' ? formatUsd(value) : value];
  });
  return Object.fromEntries(shown);
}

/** The same for every limit of a kind. */
export function byLimitName<const T extends Record<keyof Kinds, unknown>>(its: T): ByLimitName<T> {
  return Object.fromEntries(LIMITS.map(([, { name, kind }]) => [name, its[kind]])) as ByLimitName<T>;
}
