import { Frame, type Room } from '../frame';
import { Inside } from '../inside';
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
import { sessions } from './session';
import { SignInPage } from './sign-in';

const ROOMS: readonly Room[] = [
  { path: '/', name: 'Now', icon: 'usage', page: NowPage },
  { path: '/upstreams', name: 'Upstreams', icon: 'upstreams', page: UpstreamsPage },
  { path: '/rollouts', name: 'Rollouts', icon: 'rollouts', page: RolloutsPage },
  {
    path: '/accounts',
    name: 'Accounts',
    icon: 'user',
    page: AccountsPage,
    one: { name: 'Account', page: AccountPage },
  },
  { path: '/configuration', name: 'Configuration', icon: 'configuration', page: ConfigurationPage },
  { path: '/sandboxes', name: 'Sandboxes', icon: 'sandboxes', page: SandboxesPage },
  { path: '/ledger', name: 'Ledger', icon: 'ledger', page: LedgerPage },
  { path: '/tokens', name: 'Tokens', icon: 'keys', page: TokensPage },
  { path: '/audit', name: 'Audit', icon: 'audit', page: AuditPage },
];

export function Shell() {
  return (
    <Inside sessions={sessions} signIn={SignInPage}>
      {(session) => <Frame rooms={ROOMS} menu={<OperatorMenu session={session} />} />}
    </Inside>
  );
}
