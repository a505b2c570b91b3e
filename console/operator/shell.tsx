import { Frame, NowhereKnown, type Room } from '../frame';
import { Announcements } from '../parts/announce';
import { Failed } from '../parts/states';
import { place } from '../router';
import { OperatorMenu } from './operator-menu';
import { AccountPage } from './pages/accounts/account-page';
import { AccountsPage } from './pages/accounts/accounts-page';
import { AuditPage } from './pages/audit-page';
import { ConfigurationPage } from './pages/configuration/configuration-page';
import { LedgerPage } from './pages/ledger-page';
import { NowPage } from './pages/now/now-page';
import { RolloutsPage } from './pages/rollouts/rollouts-page';
import { SandboxesPage } from './pages/sandboxes-page';
import { TokensPage } from './pages/tokens/tokens-page';
import { UpstreamsPage } from './pages/upstreams/upstreams-page';
import { findSession, session } from './session';
import { SignInPage } from './sign-in';

const ROOMS: readonly Room[] = [
  { path: '/', name: 'Now', icon: 'usage', page: NowPage },
  { path: '/upstreams', name: 'Upstreams', icon: 'upstreams', page: UpstreamsPage },
  { path: '/rollouts', name: 'Rollouts', icon: 'rollouts', page: RolloutsPage },
  { path: '/accounts', name: 'Accounts', icon: 'user', page: AccountsPage },
  { path: '/configuration', name: 'Configuration', icon: 'configuration', page: ConfigurationPage },
  { path: '/sandboxes', name: 'Sandboxes', icon: 'sandboxes', page: SandboxesPage },
  { path: '/ledger', name: 'Ledger', icon: 'ledger', page: LedgerPage },
  { path: '/tokens', name: 'Tokens', icon: 'keys', page: TokensPage },
  { path: '/audit', name: 'Audit', icon: 'audit', page: AuditPage },
];

/** What is around every page of an operator. */
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
  return <Rooms />;
}

function Rooms() {
  const { path } = place.value;
  const room = ROOMS.find((each) => each.path === path);
  const accountId = /^\/accounts\/([^/]+)$/.exec(path)?.[1];
  return (
    <Frame rooms={ROOMS} titleOf={() => (accountId === undefined ? undefined : 'Account')} menu={<OperatorMenu />}>
      {accountId !== undefined ? (
        <AccountPage id={accountId} key={accountId} />
      ) : room !== undefined ? (
        <room.page />
      ) : (
        <NowhereKnown />
      )}
    </Frame>
  );
}
