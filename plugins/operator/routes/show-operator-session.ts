import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { OPERATOR_SESSION, showOperatorSession } from './operator-session';

export function showOperatorSessionRoute({ operators }: PluginGateway): Route {
  return {
    listener: 'admin',
    auth: 'page',
    method: 'GET',
    path: '/operator/api/session',
    summary: 'The session, and the token that changes must carry.',
    answers: { 200: { description: 'The session.', schema: OPERATOR_SESSION } },
    errors: ['NOT_SIGNED_IN'],
    handle: async (_visit, request, response) =>
      sendJson(response, 200, showOperatorSession(await operators.session(request))),
  };
}
