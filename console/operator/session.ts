import type { Access, Noun } from '../access';
import { sessionsOf } from '../sessions';
import type { Role, Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { keepSession, endSession } = sessions;

/** Returns the role of the signed-in operator; undefined if no operator is signed in. */
export function roleOf(): Role | undefined {
  const state = sessions.session.value;
  return state.kind === 'signed-in' ? state.session.operator.role : undefined;
}

/** Returns whether the operator's role allows changes. The gateway checks the role again for every change. */
export function mayChange(): boolean {
  const role = roleOf();
  return role === 'write' || role === 'owner';
}

/** Returns the operator's access to an account. */
export function accessTo(accountId: string): Access {
  const account = `/admin/v1/accounts/${encodeURIComponent(accountId)}`;
  // A member of an account is called a user in the admin API.
  const nameOf = (noun: Noun) => (noun === 'members' ? 'users' : noun);
  return {
    account,
    models: '/admin/v1/upstreams',
    list: (noun) => (noun === 'events' ? `/admin/v1/events?account=${accountId}` : `${account}/${nameOf(noun)}`),
    one: (noun, id) => `/admin/v1/${nameOf(noun)}/${id}`,
    role: mayChange() ? 'owner' : 'viewer',
    memberId: undefined,
  };
}
