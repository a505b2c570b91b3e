import { PASSWORD } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { updateUser } from '../../../core/sign-in/users';
import { GUESS, recognise, requirePasswords, SESSION, SESSION_HEADERS, type SignIn, signIn } from './sign-in';

const NEW_PASSWORD = {
  type: 'object',
  additionalProperties: false,
  required: ['current', 'password'],
  properties: { current: GUESS, password: PASSWORD },
} as const;

export function changePasswordRoute(parts: SignIn): Route {
  const readNewPassword = jsonBody<Settings<typeof NEW_PASSWORD>>(NEW_PASSWORD);
  return {
    listener: 'public',
    auth: 'session',
    method: 'PUT',
    path: '/console/api/password',
    summary: 'Sets a new password; all other sessions of the user end.',
    body: NEW_PASSWORD,
    answers: { 200: { description: 'The new session.', schema: SESSION, headers: SESSION_HEADERS } },
    errors: ['FORBIDDEN', 'SIGN_IN_FAILED', 'SIGN_IN_SLOWED'],
    handle: async ({ session }, request, response) => {
      requirePasswords(parts);
      const { current, password } = await readNewPassword(request);
      const { id } = await recognise(parts, request, session.user.email, current);
      const user = await updateUser(parts.database, id, { password }, `user:${id}`);
      sendJson(response, 200, await signIn(parts, response, user, 'password'));
    },
  };
}
