import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { GUESS, recognise, requirePasswords, SESSION, SESSION_HEADERS, type SignIn, signIn } from './sign-in';

const CREDENTIALS = {
  type: 'object',
  additionalProperties: false,
  required: ['email', 'password'],
  properties: { email: GUESS, password: GUESS },
} as const;

export function signInWithPasswordRoute(parts: SignIn): Route {
  const readCredentials = jsonBody<Settings<typeof CREDENTIALS>>(CREDENTIALS);
  return {
    listener: 'public',
    auth: 'page',
    method: 'POST',
    path: '/console/api/session',
    summary: 'Signs in with a password.',
    body: CREDENTIALS,
    answers: { 201: { description: 'The session.', schema: SESSION, headers: SESSION_HEADERS } },
    errors: ['FORBIDDEN', 'SIGN_IN_FAILED', 'SIGN_IN_SLOWED'],
    handle: async (_visit, request, response) => {
      requirePasswords(parts);
      const { email, password } = await readCredentials(request);
      const user = await recognise(parts, request, email, password);
      sendJson(response, 201, await signIn(parts, response, user, 'password'));
    },
  };
}
