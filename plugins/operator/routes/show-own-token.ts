import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { object, orNull, shape } from '../../../core/http/shape';
import { ROLE } from '../../../core/operators/roles';

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
