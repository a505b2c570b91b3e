import { useState } from 'preact/hooks';
import { ask } from '../api';
import { SignInForm, SignInFrame } from '../parts/sign-in';
import { TextField } from '../parts/text-field';
import { keepSession } from './session';
import type { Session } from './shapes';

const WRONG = { code: 'INVALID_API_KEY', text: 'The operator token is wrong, expired or revoked.' };

export function SignInPage({ hasEnded }: { readonly hasEnded: boolean }) {
  const [token, setToken] = useState('');
  const signIn = async () => keepSession(await ask<Session>('session', { method: 'POST', body: { token } }));
  return (
    <SignInFrame title="Sign in to operate Tollgate">
      {hasEnded && (
        <p class="note">Your session has ended, or its token was revoked. Sign in to return to this page.</p>
      )}
      <SignInForm signIn={signIn} wrong={WRONG} slowedCode="ADMIN_TOKEN_SLOWED">
        <TextField
          label="Operator token"
          hint="Enter ADMIN_TOKEN or your own token."
          type="password"
          autocomplete="current-password"
          isRequired
          maxLength={1_000}
          value={token}
          onChange={setToken}
        />
      </SignInForm>
    </SignInFrame>
  );
}
