import { sessionsOf } from './sessions';
import type { Session } from './shapes';

export const sessions = sessionsOf<Session>();
export const { keepSession, endSession } = sessions;
