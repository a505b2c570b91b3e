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
