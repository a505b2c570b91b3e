import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure } from '../api';
import { Field } from '../parts/field';
import { Mark } from '../parts/icon';
import { Failed } from '../parts/states';
import { toFailure } from '../resource';
import { keepSession } from './session';
import type { Session } from './shapes';

/** Stands in place of whatever page was asked for, which shows once the operator is signed in. */
export function SignInPage({ hasEnded }: { readonly hasEnded: boolean }) {
  const [token, setToken] = useState('');
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);

  const signIn = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      keepSession(await ask<Session>('session', { method: 'POST', body: { token } }));
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  const isWrong = failure?.code === 'INVALID_API_KEY';
  return (
    <main class="alone">
      <div class="sign-in">
        <div class="sign-in-head">
          <Mark />
          <h1>Operate Tollgate</h1>
        </div>
        {hasEnded && (
          <p class="note">
            Your session has ended, or its token was revoked. Sign in, and you are back where you were.
          </p>
        )}
        <form class="form" onSubmit={signIn}>
          <Field
            label="Operator token"
            hint="ADMIN_TOKEN, or a token that was made for you."
            error={isWrong ? 'This is not an operator token, or it was revoked.' : undefined}
          >
            {(control) => (
              <input
                {...control}
                type="password"
                autocomplete="current-password"
                required
                value={token}
                onInput={(event) => setToken(event.currentTarget.value)}
              />
            )}
          </Field>
          {failure?.code === 'ADMIN_TOKEN_SLOWED' ? (
            <p class="note warn" role="alert">
              Too many wrong tokens from this address. Try again in {failure.more.retryAfterSeconds} s.
            </p>
          ) : (
            failure !== undefined && !isWrong && <Failed failure={failure} />
          )}
          <button type="submit" class="button primary wide" disabled={isBusy}>
            {isBusy ? 'Signing in …' : 'Sign in'}
          </button>
        </form>
      </div>
    </main>
  );
}
