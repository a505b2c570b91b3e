import type { Knex } from 'knex';
import { readComingTime, TIME } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { ROLE, ROLE_NAMES } from '../../../core/operators/roles';
import {
  createOperatorToken,
  listOperatorTokens,
  type OperatorToken,
  revokeOperatorToken,
} from '../../../core/operators/tokens';
import type { Settings } from '../../../core/settings';

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

export function listTokensRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/tokens',
    summary: 'List the named tokens of operators, newest first, revoked and expired ones too.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of tokens.', schema: pageShape(TOKEN) } },
    handle: async ({ query }, _request, response) => {
      const page = pageOf(readQuery(query, PAGE_READERS));
      const { items, nextCursor } = await listOperatorTokens(database, page);
      sendJson(response, 200, { items: items.map(showToken), nextCursor });
    },
  };
}

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

export function createTokenRoute(database: Knex): Route {
  const readNewToken = jsonBody<Settings<typeof NEW_TOKEN>>(NEW_TOKEN);
  return {
    listener: 'admin',
    role: 'owner',
    method: 'POST',
    path: '/admin/v1/tokens',
    summary: 'Create a named token for an operator; only this answer contains it.',
    body: NEW_TOKEN,
    answers: {
      201: { description: 'The token with its secret.', schema: object({ ...TOKEN_FIELDS, token: shape.text }) },
    },
    errors: ['CONFLICT'],
    handle: async ({ operator }, request, response) => {
      const { name, role, expiresAt } = await readNewToken(request);
      const expiry = expiresAt === null ? undefined : readComingTime('expiresAt', expiresAt);
      const { secret, token } = await createOperatorToken(database, { name, role, expiresAt: expiry }, operator.actor);
      sendJson(response, 201, { ...showToken(token), token: secret }, { 'cache-control': 'no-store' });
    },
  };
}

export function revokeTokenRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'owner',
    method: 'DELETE',
    path: '/admin/v1/tokens/{tokenId}',
    summary: 'Revoke a token; answers when no node accepts it any more.',
    answers: { 200: { description: 'The token.', schema: TOKEN } },
    handle: async ({ params, operator }, _request, response) => {
      const token = await revokeOperatorToken(database, params['tokenId'] ?? '', operator.actor);
      sendJson(response, 200, showToken(token));
    },
  };
}

export function showOwnTokenRoute(): Route {
  return {
    listener: 'admin',
    role: 'metrics',
    method: 'GET',
    path: '/admin/v1/tokens/own',
    summary: 'Name, role and expiry of the token that asks.',
    answers: {
      200: {
        description: 'The token that asks; its name is `admin` for ADMIN_TOKEN.',
        schema: object({ name: shape.text, role: ROLE, expiresAt: orNull(shape.time) }),
      },
    },
    handle: async ({ operator: { name, role, expiresAt } }, _request, response) => {
      sendJson(response, 200, { name, role, expiresAt: expiresAt?.toISOString() ?? null });
    },
  };
}
