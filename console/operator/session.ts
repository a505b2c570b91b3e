import { sessionsOf } from '../sessions';
import type { Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { session, keepSession, findSession, endSession } = sessions;

/** Returns whether the operator's role may change things. Whatever the page shows, the gateway rejects what a role must not do. */
export function mayChange(): boolean {
  const state = session.value;
  return state.is === 'signed-in' && ['write', 'owner'].includes(state.session.operator.role);
}

/** Returns whether the operator may create and revoke tokens. */
export function isOwner(): boolean {
  const state = session.value;
  return state.is === 'signed-in' && state.session.operator.role === 'owner';
}
