import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { takeSignInLink } from '../../../core/sign-in/links';
import { GUESS, SESSION, SESSION_HEADERS, type SignIn, signIn } from './sign-in';

const LINK = {
  type: 'object',
  additionalProperties: false,
  required: ['token'],
  properties: { token: GUESS },
} as const;

export function signInWithLinkRoute(parts: SignIn): Route {
  const readLink = jsonBody<Settings<typeof LINK>>(LINK);
  return {
    listener: 'public',
    auth: 'page',
    method: 'POST',
    path: '/console/api/session/link',
    summary: 'Signs in with the token of a one-time link.',
    body: LINK,
    answers: { 201: { description: 'The session.', schema: SESSION, headers: SESSION_HEADERS } },
    errors: ['SIGN_IN_FAILED'],
    handle: async (_visit, request, response) => {
      const { token } = await readLink(request);
      const user = await takeSignInLink(parts.database, token);
      sendJson(response, 201, await signIn(parts, response, user, 'link'));
    },
  };
}
