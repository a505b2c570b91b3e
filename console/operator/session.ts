import { sessionsOf } from '../sessions';
import type { Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { session, keepSession, findSession, endSession } = sessions;

/** Whether the operator's role changes things; the gateway refuses what a role may not do, whatever is shown. */
export function mayChange(): boolean {
  const state = session.value;
  return state.is === 'signed-in' && ['write', 'owner'].includes(state.session.operator.role);
}

/** Whether the operator creates and revokes tokens. */
export function isOwner(): boolean {
  const state = session.value;
  return state.is === 'signed-in' && state.session.operator.role === 'owner';
}
