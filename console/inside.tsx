import type { ComponentChildren, ComponentType } from 'preact';
import { Announcements } from './parts/announce';
import { Failed } from './parts/states';
import type { Sessions } from './sessions';

interface Props<S> {
  readonly sessions: Sessions<S>;
  readonly signIn: ComponentType<{ readonly hasEnded: boolean }>;
  /** The content for a signed-in user. */
  readonly children: (session: S) => ComponentChildren;
}

/** Shows the sign-in, or the pages if the user is signed in. */
export function Inside<S>(props: Props<S>) {
  return (
    <>
      <Seen {...props} />
      <Announcements />
    </>
  );
}

function Seen<S>({ sessions: { session, findSession }, signIn: SignIn, children }: Props<S>) {
  const state = session.value;
  switch (state.is) {
    case 'unknown':
      return null;
    case 'unreachable':
      return (
        <main class="alone">
          <Failed failure={state.failure} onRetry={findSession} />
        </main>
      );
    case 'signed-out':
      return <SignIn hasEnded={state.ended} />;
    case 'signed-in':
      return <>{children(state.session)}</>;
  }
}
