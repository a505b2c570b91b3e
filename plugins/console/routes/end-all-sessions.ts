import type { Route } from '../../../core/api/route';
import { endSessions } from '../../../core/sign-in/sessions';
import { SIGNED_OUT, type SignIn, signOut } from './sign-in';

export function endAllSessionsRoute({ database }: SignIn): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'DELETE',
    path: '/console/api/sessions',
    summary: 'Signs out everywhere: all sessions of the user end.',
    answers: SIGNED_OUT,
    handle: async ({ session }, _request, response) => {
      await endSessions(database, session.user.id);
      signOut(response);
    },
  };
}
