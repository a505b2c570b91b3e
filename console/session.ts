import type { Access } from './access';
import { sessionsOf } from './sessions';
import type { Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { keepSession, endSession } = sessions;

/** Returns the access of the signed-in user. Without a session it is that of a viewer. */
export function ownAccess(): Access {
  const state = sessions.session.value;
  const user = state.kind === 'signed-in' ? state.session.user : undefined;
  return {
    account: 'account',
    models: 'catalog',
    list: (noun) => noun,
    one: (noun, id) => `${noun}/${id}`,
    role: user?.role ?? 'viewer',
    memberId: user?.id,
  };
}
