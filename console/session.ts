import { signal } from '@preact/signals';
import { ask, type Failure, setCsrfToken, whenSignedOut } from './api';
import { toFailure } from './resource';
import type { Session } from './shapes';

export type SessionState =
  | { readonly is: 'unknown' }
  | { readonly is: 'unreachable'; readonly failure: Failure }
  /** `ended`: it was there a moment ago. */
  | { readonly is: 'signed-out'; readonly ended: boolean }
  | { readonly is: 'signed-in'; readonly session: Session };

export const session = signal<SessionState>({ is: 'unknown' });

whenSignedOut(() => {
  setCsrfToken(undefined);
  // Several requests may come back with the same news.
  if (session.value.is !== 'signed-out') {
    session.value = { is: 'signed-out', ended: session.value.is === 'signed-in' };
  }
});

export function keepSession(answer: Session): void {
  setCsrfToken(answer.csrfToken);
  session.value = { is: 'signed-in', session: answer };
}

export async function findSession(): Promise<void> {
  session.value = { is: 'unknown' };
  try {
    keepSession(await ask<Session>('session'));
  } catch (error) {
    const failure = toFailure(error);
    // Not signed in is said by `whenSignedOut`.
    if (failure.status !== 401) session.value = { is: 'unreachable', failure };
  }
}

export async function signOut(everywhere: boolean): Promise<void> {
  await ask(everywhere ? 'sessions' : 'session', { method: 'DELETE' });
  setCsrfToken(undefined);
  session.value = { is: 'signed-out', ended: false };
}
