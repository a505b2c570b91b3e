import type { Route } from '../../../core/api/route';
import { endSession } from '../../../core/sign-in/sessions';
import { SIGNED_OUT, type SignIn, signOut } from './sign-in';

export function endSessionRoute({ database }: SignIn): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'DELETE',
    path: '/console/api/session',
    summary: 'Signs out.',
    answers: SIGNED_OUT,
    handle: async ({ session }, _request, response) => {
      await endSession(database, session);
      signOut(response);
    },
  };
}
