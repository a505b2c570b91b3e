import { useEffect } from 'preact/hooks';
import { AccountMenu } from './account-menu';
import { Frame, NowhereKnown, type Room } from './frame';
import { KeysPage } from './pages/keys/keys-page';
import { OverviewPage } from './pages/overview/overview-page';
import { SandboxPage } from './pages/sandboxes/sandbox-page';
import { SandboxesPage } from './pages/sandboxes/sandboxes-page';
import { SignInPage } from './pages/sign-in';
import { UsagePage } from './pages/usage/usage-page';
import { Announcements } from './parts/announce';
import { Failed } from './parts/states';
import { go, place } from './router';
import { findSession, session } from './session';

const ROOMS: readonly Room[] = [
  { path: '/', name: 'Overview', icon: 'overview', page: OverviewPage },
  { path: '/usage', name: 'Usage Records', icon: 'usage', page: UsagePage },
  { path: '/keys', name: 'API Keys', icon: 'keys', page: KeysPage },
  { path: '/sandboxes', name: 'Sandboxes', icon: 'sandboxes', page: SandboxesPage },
];

/** What is around every page: who is signed in, where one can go, and the page itself. */
export function Shell() {
  return (
    <>
      <Inside />
      <Announcements />
    </>
  );
}

function Inside() {
  const state = session.value;
  if (state.is === 'unknown') return null;
  if (state.is === 'unreachable') {
    return (
      <main class="alone">
        <Failed failure={state.failure} onRetry={findSession} />
      </main>
    );
  }
  if (state.is === 'signed-out') return <SignInPage hasEnded={state.ended} />;
  return <Rooms isFrozen={state.session.account.status === 'frozen'} />;
}

function Rooms({ isFrozen }: { readonly isFrozen: boolean }) {
  const { path } = place.value;
  const isSignIn = path === '/sign-in';
  useEffect(() => {
    if (isSignIn) go('/', { replace: true });
  }, [isSignIn]);
  const room = ROOMS.find((each) => each.path === path);
  const sandboxId = /^\/sandboxes\/([^/]+)$/.exec(path)?.[1];
  return (
    <Frame rooms={ROOMS} titleOf={() => (sandboxId === undefined ? undefined : 'Sandbox')} menu={<AccountMenu />}>
      {isFrozen && (
        <p class="note warn frozen">This account is frozen: its calls are refused until the operator lifts that.</p>
      )}
      {sandboxId !== undefined ? (
        <SandboxPage id={sandboxId} key={sandboxId} />
      ) : room !== undefined ? (
        <room.page />
      ) : (
        !isSignIn && <NowhereKnown />
      )}
    </Frame>
  );
}
