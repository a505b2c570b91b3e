import { useState } from 'preact/hooks';
import type { Failure } from './api';
import { ask } from './api';
import { announce } from './parts/announce';
import { Dialog } from './parts/dialog';
import { Field } from './parts/field';
import { Icon } from './parts/icon';
import { Popover } from './parts/popover';
import { Failed } from './parts/states';
import { ThemeChoice } from './parts/theme-choice';
import { toFailure } from './resource';
import { keepSession, session, signOut } from './session';
import type { Session } from './shapes';

/** Who is signed in, how the page looks, and the way out. */
export function AccountMenu() {
  const [asks, setAsks] = useState<'password'>();
  const [failure, setFailure] = useState<Failure>();
  const state = session.value;
  if (state.is !== 'signed-in') return null;
  const { user, account, passwordSignIn } = state.session;

  const leave = async (everywhere: boolean) => {
    try {
      await signOut(everywhere);
    } catch (error) {
      setFailure(toFailure(error));
    }
  };
  return (
    <div class="account">
      <Popover
        up
        look="account-button"
        label={
          <>
            <Icon name="user" />
            <span class="account-names">
              <span class="unseen">Account </span>
              <span class="cut">{account.name}</span>
              <span class="cut faint">{user.email}</span>
            </span>
          </>
        }
      >
        {(close) => (
          <div class="account-sheet">
            <div class="account-who">
              <p class="cut">{user.email}</p>
              <p class="faint small cut">
                {account.name}
                {account.status === 'frozen' && ' · frozen'}
              </p>
            </div>
            <ThemeChoice />
            <ul class="menu">
              {passwordSignIn && (
                <li>
                  <button
                    type="button"
                    onClick={() => {
                      close();
                      setAsks('password');
                    }}
                  >
                    Change the password
                  </button>
                </li>
              )}
              <li>
                <button type="button" onClick={() => leave(true)}>
                  Sign out everywhere
                </button>
              </li>
              <li>
                <button type="button" onClick={() => leave(false)}>
                  Sign out
                </button>
              </li>
            </ul>
            {failure !== undefined && <Failed failure={failure} />}
          </div>
        )}
      </Popover>
      {asks === 'password' && <PasswordDialog onClose={() => setAsks(undefined)} />}
    </div>
  );
}

function PasswordDialog({ onClose }: { readonly onClose: () => void }) {
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);

  const change = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      keepSession(await ask<Session>('password', { method: 'PUT', body: { current, password } }));
      announce('The password is changed. All other sessions have ended.');
      onClose();
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Change the password" onClose={onClose}>
      <form class="form" onSubmit={change}>
        <Field
          label="Current password"
          error={failure?.code === 'SIGN_IN_FAILED' ? 'This is not your password.' : undefined}
        >
          {(control) => (
            <input
              {...control}
              type="password"
              autocomplete="current-password"
              required
              value={current}
              onInput={(event) => setCurrent(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="New password" hint="12 characters or more. All other sessions end.">
          {(control) => (
            <input
              {...control}
              type="password"
              autocomplete="new-password"
              required
              minLength={12}
              maxLength={200}
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          )}
        </Field>
        {failure !== undefined && failure.code !== 'SIGN_IN_FAILED' && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            Change the password
          </button>
        </div>
      </form>
    </Dialog>
  );
}
