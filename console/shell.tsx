import { useEffect } from 'preact/hooks';
import { AccountMenu } from './account-menu';
import { Frame, type Room } from './frame';
import { Inside } from './inside';
import { KeysPage } from './pages/keys/keys-page';
import { OverviewPage } from './pages/overview/overview-page';
import { SandboxPage } from './pages/sandboxes/sandbox-page';
import { SandboxesPage } from './pages/sandboxes/sandboxes-page';
import { SignInPage } from './pages/sign-in';
import { UsagePage } from './pages/usage/usage-page';
import { go, place } from './router';
import { sessions } from './session';
import type { Session } from './shapes';

const ROOMS: readonly Room[] = [
  { path: '/', name: 'Overview', icon: 'overview', page: OverviewPage },
  { path: '/usage', name: 'Usage Records', icon: 'usage', page: UsagePage },
  { path: '/keys', name: 'API Keys', icon: 'keys', page: KeysPage },
  {
    path: '/sandboxes',
    name: 'Sandboxes',
    icon: 'sandboxes',
    page: SandboxesPage,
    one: { name: 'Sandbox', page: SandboxPage },
  },
];

export function Shell() {
  return (
    <Inside sessions={sessions} signIn={SignInPage}>
      {(session) => <Rooms session={session} />}
    </Inside>
  );
}

function Rooms({ session }: { readonly session: Session }) {
  const isSignIn = place.value.path === '/sign-in';
  useEffect(() => {
    if (isSignIn) go('/', { replace: true });
  }, [isSignIn]);
  if (isSignIn) return null;
  const notice = session.account.status === 'frozen' && (
    <p class="note warn frozen">
      This account is frozen. The gateway refuses its calls until the operator unfreezes it.
    </p>
  );
  return <Frame rooms={ROOMS} menu={<AccountMenu session={session} />} notice={notice} />;
}
