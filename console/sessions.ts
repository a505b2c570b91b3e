import { type Signal, signal } from '@preact/signals';
import { ask, type Failure, setCsrfToken, whenSignedOut } from './api';
import { toFailure } from './resource';

type SessionState<S> =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unreachable'; readonly failure: Failure }
  /** `ended`: whether a session has just ended. */
  | { readonly kind: 'signed-out'; readonly ended: boolean }
  | { readonly kind: 'signed-in'; readonly session: S };

/** The session state of a page, and functions that find, keep and end the session. */
export interface Sessions<S> {
  readonly session: Signal<SessionState<S>>;
  readonly keepSession: (answer: S) => void;
  readonly findSession: () => Promise<void>;
  /** Signs out by deleting `path`: the path of this session, or of all sessions of the user. */
  readonly endSession: (path: string) => Promise<void>;
}

export function sessionsOf<S extends { readonly csrfToken: string }>(): Sessions<S> {
  const session = signal<SessionState<S>>({ kind: 'unknown' });
  whenSignedOut(() => {
    setCsrfToken(undefined);
    // Handles only the first report, because several failed requests may report the end of the same session.
    if (session.value.kind !== 'signed-out') {
      session.value = { kind: 'signed-out', ended: session.value.kind === 'signed-in' };
    }
  });
  const keepSession = (answer: S): void => {
    setCsrfToken(answer.csrfToken);
    session.value = { kind: 'signed-in', session: answer };
  };
  return {
    session,
    keepSession,
    findSession: async () => {
      session.value = { kind: 'unknown' };
      try {
        keepSession(await ask<S>('session'));
      } catch (error) {
        const failure = toFailure(error);
        // Ignores 401, because `whenSignedOut` already handles it.
        if (failure.status !== 401) session.value = { kind: 'unreachable', failure };
      }
    },
    endSession: async (path) => {
      await ask(path, { method: 'DELETE' });
      setCsrfToken(undefined);
      session.value = { kind: 'signed-out', ended: false };
    },
  };
}
