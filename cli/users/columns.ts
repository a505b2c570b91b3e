import type { Columns } from '../output';

export interface UserShape {
  readonly id: string;
  readonly email: string;
  readonly status: string;
  readonly createdAt: string;
  readonly passwordChangedAt: string;
  readonly identity: { readonly issuer: string; readonly subject: string } | null;
}

export const USER_COLUMNS: Columns<UserShape> = {
  id: ({ id }) => id,
  email: ({ email }) => email,
  status: ({ status }) => status,
  created: ({ createdAt }) => createdAt,
  'password set': ({ passwordChangedAt }) => passwordChangedAt,
  identity: ({ identity }) => identity && `${identity.subject} at ${identity.issuer}`,
};
