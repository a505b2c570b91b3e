import type { Columns } from '../output';

export interface TokenShape {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly suffix: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

export const TOKEN_COLUMNS: Columns<TokenShape> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  role: ({ role }) => role,
  ends: ({ suffix }) => `…${suffix}`,
  created: ({ createdAt }) => createdAt,
  expires: ({ expiresAt }) => expiresAt ?? 'never',
  revoked: ({ revokedAt }) => revokedAt,
  'last used': ({ lastUsedAt }) => lastUsedAt,
};
