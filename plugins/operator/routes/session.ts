import type { IncomingMessage, ServerResponse } from 'node:http';
import { operatorPageRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { OPERATOR_COOKIE, setCookie } from '../../../core/http/cookies';
import { object, shape } from '../../../core/http/shape';
import type { OperatorSession } from '../../../core/operators/operators';
import { ROLE } from '../../../core/operators/roles';
import { csrfTokenOf, type SessionTimes } from '../../../core/sign-in/sessions';

/** Shows a session to the operator's page. */
function showOperatorSession(session: OperatorSession): object {
  const { operator, createdAt, expiresAt } = session;
  return {
    operator: { name: operator.name, role: operator.role },
    csrfToken: csrfTokenOf(session),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}

/** The result of `showOperatorSession`. */
const OPERATOR_SESSION = object({
  operator: object({ name: shape.text, role: ROLE }),
  csrfToken: shape.text,
  createdAt: shape.time,
  expiresAt: shape.time,
});

/** Sets the session cookie, or clears it. A proxy may terminate TLS, so the `Origin` header decides whether the cookie is secure. */
function giveSession(request: IncomingMessage, response: ServerResponse, session: OperatorSession | undefined): void {
  const secure = request.headers.origin?.startsWith('https:') === true;
  const lastsMs = session === undefined ? 0 : session.expiresAt.getTime() - session.createdAt.getTime();
  const options = { sameSite: 'Strict', maxAgeSeconds: Math.floor(lastsMs / 1_000), secure } as const;
  setCookie(response, OPERATOR_COOKIE, session?.token ?? '', options);
}

const TOKEN = {
  type: 'object',
  additionalProperties: false,
  required: ['token'],
  properties: { token: { type: 'string', maxLength: 1_000 } },
} as const;

export function sessionRoutes({ operators }: PluginGateway, times: SessionTimes): readonly Route[] {
  return [
    operatorPageRoute('POST /operator/api/session', {
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
      handle: async ({ body: { token } }, request, response) => {
        const session = await operators.signIn(request, token.trim(), times);
        giveSession(request, response, session);
        return showOperatorSession(session);
      },
    }),
    operatorPageRoute('GET /operator/api/session', {
      summary: 'The session, and the token that changes must carry.',
      answers: { 200: { description: 'The session.', schema: OPERATOR_SESSION } },
      errors: ['NOT_SIGNED_IN'],
      handle: async (_asked, request) => showOperatorSession(await operators.session(request)),
    }),
    operatorPageRoute('DELETE /operator/api/session', {
      summary: 'Signs out.',
      answers: { 204: { description: 'It has ended.', headers: { 'Set-Cookie': 'No session any more.' } } },
      errors: ['NOT_SIGNED_IN', 'FORBIDDEN'],
      handle: async (_asked, request, response) => {
        await operators.endSession(await operators.session(request));
        giveSession(request, response, undefined);
        response.writeHead(204);
        response.end();
      },
    }),
  ];
}
