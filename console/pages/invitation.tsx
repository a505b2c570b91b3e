import { useState } from 'preact/hooks';
import { ask } from '../api';
import { SignInForm, SignInFrame } from '../parts/sign-in';
import { go, hrefOf, takeFragment } from '../router';
import { keepSession, sessions } from '../session';
import type { Session } from '../shapes';

const PASSWORD = {
  name: 'password',
  label: 'Your password',
  hint: 'At least 12 characters.',
  kind: 'password',
  autocomplete: 'new-password',
  isRequired: true,
  minLength: 12,
} as const;

const OVER = {
  code: 'SIGN_IN_FAILED',
  text: 'This invitation was already used, was withdrawn, or has expired. If you accepted it, sign in. Otherwise ask the person who invited you for a new link.',
};

/** The page that a link of an invitation opens: a new member chooses a password, which opens the session. */
export function InvitationPage() {
  const [token] = useState(() => takeFragment().get('token'));
  const state = sessions.session.value;
  const accept = async ({ password }: Readonly<Record<string, string>>) => {
    const session = await ask<Session>('session/invitation', { method: 'POST', body: { token, password } });
    keepSession(session);
    go('/', { replace: true });
  };
  return (
    <SignInFrame title="Accept the invitation">
      {state.kind === 'signed-in' && (
        <p class="note">
          You are signed in as <strong>{state.session.user.email}</strong>. If you accept, this browser is signed in as
          the invited member instead.
        </p>
      )}
      {token !== null && (
        <SignInForm
          fields={[PASSWORD]}
          signIn={accept}
          verb="Accept and sign in"
          wrong={OVER}
          slowedCode="SIGN_IN_SLOWED"
        />
      )}
      {token === null && (
        <p class="note warn" role="alert">
          This page needs the whole link of your invitation. Open the link again, or ask for a new one.
        </p>
      )}
      <p class="quiet small other-way">
        <a href={hrefOf('/')}>{state.kind === 'signed-in' ? 'Back to the console' : 'Sign in with your own user'}</a>
      </p>
    </SignInFrame>
  );
}
