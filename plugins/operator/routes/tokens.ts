import type { Knex } from 'knex';
import { readComingTime, TIME } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { object, orNull, pageShape, shape } from '../../../core/http/shape';
import { ROLE, ROLE_NAMES } from '../../../core/operators/roles';
import {
  createOperatorToken,
  listOperatorTokens,
  type OperatorToken,
  revokeOperatorToken,
} from '../../../core/operators/tokens';

/** Shows a token to operators, without any part of its secret. */
function showToken({ createdAt, expiresAt, revokedAt, lastUsedAt, ...token }: OperatorToken): object {
  return {
    ...token,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}

/** The members of the result of `showToken` in the OpenAPI document. */
const TOKEN_FIELDS = {
  id: shape.uuid,
  name: shape.text,
  role: ROLE,
  suffix: { ...shape.text, description: 'Its last four characters.' },
  createdAt: shape.time,
  expiresAt: orNull(shape.time),
  revokedAt: orNull(shape.time),
  lastUsedAt: { ...orNull(shape.time), description: 'To the minute.' },
};

const TOKEN = object(TOKEN_FIELDS);

const NEW_TOKEN = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'role', 'expiresAt'],
  properties: {
    name: {
      description: 'The audit log names the token by it, so no other token may use it again.',
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
      'x-expected': 'up to 64 letters, digits, dots, underscores and hyphens, the first a letter or digit',
    },
    role: { enum: ROLE_NAMES },
    expiresAt: { ...TIME, type: ['string', 'null'], description: 'Null for a token that never expires.' },
  },
  example: { name: 'prometheus', role: 'metrics', expiresAt: '2999-01-01T00:00:00Z' },
} as const;

export function tokenRoutes(database: Knex): readonly Route[] {
  return [
    adminRoute('POST /admin/v1/tokens', {
      role: 'owner',
      summary: 'Create a named token for an operator; only this answer contains it.',
      body: NEW_TOKEN,
      answers: {
        201: { description: 'The token with its secret.', schema: object({ ...TOKEN_FIELDS, token: shape.text }) },
      },
      errors: ['CONFLICT'],
      handle: async ({ body: { name, role, expiresAt }, operator }) => {
        const expiry = expiresAt === null ? undefined : readComingTime('expiresAt', expiresAt);
        const wanted = { name, role, expiresAt: expiry };
        const { secret, token } = await createOperatorToken(database, wanted, operator.actor);
        return { ...showToken(token), token: secret };
      },
    }),
    adminRoute('GET /admin/v1/tokens', {
      role: 'read',
      summary: 'List the named tokens of operators, newest first, revoked and expired ones too.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of tokens.', schema: pageShape(TOKEN) } },
      handle: async ({ filters }) => {
        const { items, nextCursor } = await listOperatorTokens(database, pageOf(filters));
        return { items: items.map(showToken), nextCursor };
      },
    }),
    adminRoute('GET /admin/v1/tokens/own', {
      role: 'metrics',
      summary: 'Name, role and expiry of the token that asks.',
      answers: {
        200: {
          description: 'The token that asks; its name is `admin` for ADMIN_TOKEN.',
          schema: object({ name: shape.text, role: ROLE, expiresAt: orNull(shape.time) }),
        },
      },
      handle: async ({ operator: { name, role, expiresAt } }) => ({
        name,
        role,
        expiresAt: expiresAt?.toISOString() ?? null,
      }),
    }),
    adminRoute('DELETE /admin/v1/tokens/{tokenId}', {
      role: 'owner',
      summary: 'Revoke a token; answers when no node accepts it any more.',
      answers: { 200: { description: 'The token.', schema: TOKEN } },
      handle: async ({ params, operator }) =>
        showToken(await revokeOperatorToken(database, params.tokenId, operator.actor)),
    }),
  ];
}
