import { type Room, start } from './frame';
import { AccountPage } from './operator/account-page';
import { AccountsPage } from './operator/accounts-page';
import { AuditPage } from './operator/audit-page';
import { CataloguePage } from './operator/catalogue/catalogue-page';
import { ProposalPage } from './operator/catalogue/proposal-page';
import { ConfigurationPage } from './operator/configuration/configuration-page';
import { LedgerPage } from './operator/ledger-page';
import { NowPage } from './operator/now-page';
import { RolloutsPage } from './operator/rollouts-page';
import { SandboxesPage } from './operator/sandboxes-page';
import { endSession, mayChange, sessions } from './operator/session';
import type { Session } from './operator/shapes';
import { SignInPage } from './operator/sign-in';
import { TokensPage } from './operator/tokens-page';
import { UpstreamsPage } from './operator/upstreams/upstreams-page';
import { SessionMenu } from './parts/session-menu';
import { showClock, showWhole } from './times';
import './style/operator.css';

/** The parts of the operators' page, which is at `/operator`. */

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
  {
    path: '/catalogue',
    name: 'Catalogue',
    icon: 'catalogue',
    page: CataloguePage,
    one: { name: 'Proposal', page: ProposalPage },
  },
  { path: '/configuration', name: 'Configuration', icon: 'configuration', page: ConfigurationPage },
  { path: '/sandboxes', name: 'Sandboxes', icon: 'sandboxes', page: SandboxesPage },
  { path: '/ledger', name: 'Ledger', icon: 'ledger', page: LedgerPage },
  { path: '/tokens', name: 'Tokens', icon: 'keys', page: TokensPage },
  { path: '/audit', name: 'Audit', icon: 'audit', page: AuditPage },
];

start({ sessions, signIn: SignInPage, rooms: ROOMS, menu: OperatorMenu });

function OperatorMenu({ session: { operator, expiresAt } }: { readonly session: Session }) {
  return (
    <SessionMenu
      label="Operator"
      name={operator.name}
      more={mayChange() ? operator.role : `${operator.role}: read only`}
      head={
        <>
          <p class="cut">{operator.name}</p>
          <p class="faint small" title={showWhole(expiresAt)}>
            Role {operator.role} · signed in until {showClock(expiresAt)}
          </p>
        </>
      }
      items={[{ text: 'Sign out', run: () => endSession('session') }]}
    />
  );
}
