import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { SESSION, type SignIn, showSession } from './sign-in';

export function showSessionRoute(parts: SignIn): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/session',
    summary: 'The session, and the token that changes must carry.',
    answers: { 200: { description: 'The session.', schema: SESSION } },
    handle: async ({ session }, _request, response) => sendJson(response, 200, await showSession(parts, session)),
  };
}
