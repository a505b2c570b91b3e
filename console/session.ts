import { sessionsOf } from './sessions';
import type { Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { session, keepSession, findSession, endSession } = sessions;

export const signOut = (everywhere: boolean): Promise<void> => endSession(everywhere ? 'sessions' : 'session');
