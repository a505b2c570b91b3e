import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type TokenShape = Answers['GET /admin/v1/tokens']['items'][number];

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
