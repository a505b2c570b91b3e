import { object, oneOf, orNull, shape } from '../../../core/http/shape';
import type { User } from '../../../core/sign-in/users';

/** Shows a console user to operators, without the password and its hash. */
export function showUser({ id, accountId, email, status, createdAt, passwordChangedAt, identity }: User): object {
  return {
    id,
    accountId,
    email,
    status,
    createdAt: createdAt.toISOString(),
    passwordChangedAt: passwordChangedAt.toISOString(),
    identity: identity === null ? null : { ...identity, boundAt: identity.boundAt.toISOString() },
  };
}

/** The result of `showUser` in the OpenAPI document. */
export const USER = object({
  id: shape.uuid,
  accountId: shape.uuid,
  email: shape.text,
  status: oneOf('active', 'disabled'),
  createdAt: shape.time,
  passwordChangedAt: shape.time,
  identity: orNull({
    ...object({ issuer: shape.text, subject: shape.text, boundAt: shape.time }),
    description: 'The only identity of a provider that signs this user in; null until the first sign-in by one.',
  }),
});
