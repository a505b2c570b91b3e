import type { Knex } from 'knex';
import { readComingTime, TIME } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import { object, shape } from '../../../core/http/shape';
import { ROLE_NAMES } from '../../../core/operators/roles';
import { createOperatorToken } from '../../../core/operators/tokens';
import type { Settings } from '../../../core/settings';
import { showToken, TOKEN_FIELDS } from './token';

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
