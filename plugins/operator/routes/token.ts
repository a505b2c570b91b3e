import { object, orNull, shape } from '../../../core/http/shape';
import { ROLE } from '../../../core/operators/roles';
import type { OperatorToken } from '../../../core/operators/tokens';

/** Shows a token to operators, without any part of its secret. */
export function showToken({ createdAt, expiresAt, revokedAt, lastUsedAt, ...token }: OperatorToken): object {
  return {
    ...token,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}

/** The members of the result of `showToken` in the OpenAPI document. */
export const TOKEN_FIELDS = {
  id: shape.uuid,
  name: shape.text,
  role: ROLE,
  suffix: { ...shape.text, description: 'Its last four characters.' },
  createdAt: shape.time,
  expiresAt: orNull(shape.time),
  revokedAt: orNull(shape.time),
  lastUsedAt: { ...orNull(shape.time), description: 'To the minute.' },
};

export const TOKEN = object(TOKEN_FIELDS);
