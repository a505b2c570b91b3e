import { sessionsOf } from './sessions';
import type { Session } from './shapes';

export const { session, keepSession, findSession, endSession } = sessionsOf<Session>();

export const signOut = (everywhere: boolean): Promise<void> => endSession(everywhere ? 'sessions' : 'session');
