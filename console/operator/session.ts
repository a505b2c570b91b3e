import { sessionsOf } from '../sessions';
import type { Role, Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { keepSession, endSession } = sessions;

/** Returns the role of the signed-in operator. */
export function roleOf(): Role | undefined {
  const state = sessions.session.value;
  return state.kind === 'signed-in' ? state.session.operator.role : undefined;
}

/** Returns whether the operator's role may change things. Whatever the page shows, the gateway rejects what a role must not do. */
export function mayChange(): boolean {
  const role = roleOf();
  return role === 'write' || role === 'owner';
}
