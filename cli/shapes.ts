import type { Answers } from '../shapes/answers';
import type { Columns } from './output';

/** The answers of /admin/v1, and their columns in tables. */

export type AccountShape = Answers['GET /admin/v1/accounts/{accountId}'];

export const ACCOUNT_COLUMNS: Columns<AccountShape> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  status: ({ status }) => status,
  'balance USD': ({ balanceUsd }) => balanceUsd,
  'available USD': ({ availableUsd }) => availableUsd,
  markup: ({ markup }) => markup,
  created: ({ createdAt }) => createdAt,
};

export type KeyShape = Answers['GET /admin/v1/accounts/{accountId}/keys']['items'][number];

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

export type ViolationShape = Answers['GET /admin/v1/ledger/verify']['items'][number];

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
