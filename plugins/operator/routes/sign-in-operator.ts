import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import { giveSession, OPERATOR_SESSION, showOperatorSession } from './operator-session';

const TOKEN = {
  type: 'object',
  additionalProperties: false,
  required: ['token'],
  properties: { token: { type: 'string', maxLength: 1_000 } },
} as const;

export function signInOperatorRoute({ operators }: PluginGateway, times: SessionTimes): Route {
  const readToken = jsonBody<Settings<typeof TOKEN>>(TOKEN);
  return {
    listener: 'admin',
    auth: 'page',
    method: 'POST',
    path: '/operator/api/session',
    summary: 'Signs in with an operator token.',
    body: TOKEN,
    answers: {
      201: {
        description: 'The session.',
        schema: OPERATOR_SESSION,
        headers: { 'Set-Cookie': 'The session, which no script can read.' },
      },
    },
    errors: ['INVALID_API_KEY', 'ADMIN_TOKEN_SLOWED', 'OPERATOR_ROLE_NEEDED', 'FORBIDDEN'],
    handle: async (_visit, request, response) => {
      const { token } = await readToken(request);
      const session = await operators.signIn(request, token.trim(), times);
      giveSession(request, response, session);
      sendJson(response, 201, showOperatorSession(session));
    },
  };
}
