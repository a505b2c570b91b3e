import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type UserShape = Answers['GET /admin/v1/accounts/{accountId}/users']['items'][number];

export const USER_COLUMNS: Columns<UserShape> = {
  id: ({ id }) => id,
  email: ({ email }) => email,
  status: ({ status }) => status,
  created: ({ createdAt }) => createdAt,
  'password set': ({ passwordChangedAt }) => passwordChangedAt,
  identity: ({ identity }) => identity && `${identity.subject} at ${identity.issuer}`,
};
