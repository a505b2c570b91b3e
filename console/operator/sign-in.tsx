import { ask } from '../api';
import { SignInForm, SignInFrame } from '../parts/sign-in';
import { keepSession } from './session';
import type { Session } from './shapes';

const TOKEN = {
  name: 'token',
  label: 'Operator token',
  hint: 'Enter ADMIN_TOKEN or your own token.',
  kind: 'password',
  isRequired: true,
} as const;

const WRONG = { code: 'INVALID_API_KEY', text: 'The operator token is wrong, expired or revoked.' };

export function SignInPage({ hasEnded }: { readonly hasEnded: boolean }) {
  return (
    <SignInFrame title="Sign in to operate Tollgate">
      {hasEnded && (
        <p class="note">Your session has ended, or its token was revoked. Sign in to return to this page.</p>
      )}
      <SignInForm
        fields={[TOKEN]}
        signIn={async (body) => keepSession(await ask<Session>('session', { method: 'POST', body }))}
        wrong={WRONG}
        slowedCode="ADMIN_TOKEN_SLOWED"
      />
    </SignInFrame>
  );
}
