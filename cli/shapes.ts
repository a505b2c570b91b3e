import type { Columns } from './output';

/** What /admin/v1 answers, and how people see it. */

export interface AccountShape {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly createdAt: string;
  readonly balanceUsd: string | null;
  readonly heldUsd: string | null;
  readonly availableUsd: string | null;
  readonly markup: string | null;
}

export const ACCOUNT_COLUMNS: Columns<AccountShape> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  status: ({ status }) => status,
  'balance USD': ({ balanceUsd }) => balanceUsd,
  'available USD': ({ availableUsd }) => availableUsd,
  markup: ({ markup }) => markup,
  created: ({ createdAt }) => createdAt,
};

export interface KeyShape {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: string;
  readonly balanceLimit: string | null;
  readonly dailyLimit: string | null;
  readonly monthlyLimit: string | null;
  readonly callsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly spentUsd: string | null;
  readonly allowedModels: readonly string[] | null;
  readonly markup: string | null;
  readonly debug: boolean;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly allowedAddresses: readonly string[] | null;
}

export const KEY_COLUMNS: Columns<KeyShape> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  key: ({ prefix, suffix }) => `${prefix}…${suffix}`,
  status: ({ status }) => status,
  'spent USD': ({ spentUsd }) => spentUsd,
  'limit USD': ({ balanceLimit }) => balanceLimit,
  'daily USD': ({ dailyLimit }) => dailyLimit,
  'monthly USD': ({ monthlyLimit }) => monthlyLimit,
  'calls/min': ({ callsPerMinute }) => callsPerMinute,
  'tokens/min': ({ tokensPerMinute }) => tokensPerMinute,
  models: ({ allowedModels }) => allowedModels?.join(', ') ?? 'all',
  markup: ({ markup }) => markup,
  debug: ({ debug }) => (debug ? 'yes' : null),
  addresses: ({ allowedAddresses }) => allowedAddresses?.join(', ') ?? 'all',
  expires: ({ expiresAt }) => expiresAt ?? 'never',
  created: ({ createdAt }) => createdAt,
};

export interface ViolationShape {
  readonly invariant: string;
  readonly holds: string;
  readonly accountId: string | null;
  readonly seq: number | null;
  readonly keyId: string | null;
  readonly rid: string | null;
  readonly expected: string;
  readonly found: string;
  readonly repair: string | null;
}

export const VIOLATION_COLUMNS: Columns<ViolationShape> = {
  invariant: ({ invariant }) => invariant,
  account: ({ accountId }) => accountId,
  seq: ({ seq }) => seq,
  key: ({ keyId }) => keyId,
  reservation: ({ rid }) => rid,
  expected: ({ expected }) => expected,
  found: ({ found }) => found,
  repair: ({ repair }) => repair,
};

export interface ListShape<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}
