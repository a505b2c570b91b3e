import { ask, Failure } from './api';
import { type Room, start } from './frame';
import { AlertsPage } from './pages/alerts/alerts-page';
import { InvitationPage } from './pages/invitation';
import { KeysPage } from './pages/keys/keys-page';
import { OverviewPage } from './pages/overview/overview-page';
import { SandboxPage } from './pages/sandboxes/sandbox-page';
import { SandboxesPage } from './pages/sandboxes/sandboxes-page';
import { SignInPage } from './pages/sign-in';
import { TeamPage } from './pages/team/team-page';
import { UsagePage } from './pages/usage/usage-page';
import { decide } from './parts/dialog';
import { SessionMenu } from './parts/session-menu';
import { endSession, keepSession, ownAccess, sessions } from './session';
import type { Session } from './shapes';
import './style/sandbox.css';

/** The parts of the customers' page, which is at `/console`. */

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
  { path: '/team', name: 'Team', icon: 'team', page: TeamPage },
  { path: '/alerts', name: 'Alerts', icon: 'alerts', page: AlertsPage, isFor: () => ownAccess().role !== 'member' },
];

start({
  sessions,
  signIn: SignInPage,
  open: { '/invitation': InvitationPage },
  rooms: ROOMS,
  menu: AccountMenu,
  noticeOf,
});

function noticeOf({ account }: Session) {
  if (account.status !== 'frozen') return null;
  return (
    <p class="note warn frozen">
      This account is frozen. The gateway refuses its calls until the operator unfreezes it.
    </p>
  );
}

function AccountMenu({ session: { user, account, passwordSignIn } }: { readonly session: Session }) {
  const head = (
    <>
      <p class="cut">{user.email}</p>
      <p class="faint small cut">
        {account.name}
        {account.status === 'frozen' && ' · frozen'}
      </p>
    </>
  );
  const items = [
    ...(passwordSignIn ? [{ text: 'Change password', run: changePassword }] : []),
    { text: 'Sign out everywhere', run: () => endSession('sessions') },
    { text: 'Sign out', run: () => endSession('session') },
  ];
  return <SessionMenu label="Account" name={account.name} more={user.email} head={head} items={items} />;
}

function changePassword(): void {
  decide({
    title: 'Change password',
    verb: 'Change password',
    done: 'The password is changed. All other sessions have ended.',
    fields: [
      { name: 'current', label: 'Current password', kind: 'password', isRequired: true },
      {
        name: 'password',
        label: 'New password',
        hint: 'At least 12 characters. All other sessions end.',
        kind: 'password',
        autocomplete: 'new-password',
        isRequired: true,
        minLength: 12,
      },
    ],
    act: async (body) => {
      try {
        keepSession(await ask<Session>('password', { method: 'PUT', body }));
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'SIGN_IN_FAILED') throw error;
        throw new Failure(error.status, error.code, 'The current password is wrong.', { param: 'current' });
      }
    },
  });
}
