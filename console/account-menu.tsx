import { useState } from 'preact/hooks';
import { ask, type Failure } from './api';
import { announce } from './parts/announce';
import { Dialog } from './parts/dialog';
import { SessionMenu } from './parts/session-menu';
import { Failed } from './parts/states';
import { TextField } from './parts/text-field';
import { toFailure } from './resource';
import { keepSession, signOut } from './session';
import type { Session } from './shapes';

export function AccountMenu({ session: { user, account, passwordSignIn } }: { readonly session: Session }) {
  const [isChanging, setChanging] = useState(false);
  const change = (close: () => void) => {
    close();
    setChanging(true);
  };
  return (
    <>
      <SessionMenu
        label="Account"
        name={account.name}
        more={user.email}
        head={
          <>
            <p class="cut">{user.email}</p>
            <p class="faint small cut">
              {account.name}
              {account.status === 'frozen' && ' · frozen'}
            </p>
          </>
        }
        items={[
          ...(passwordSignIn ? [{ text: 'Change password', run: change }] : []),
          { text: 'Sign out everywhere', run: () => signOut(true) },
          { text: 'Sign out', run: () => signOut(false) },
        ]}
      />
      {isChanging && <PasswordDialog onClose={() => setChanging(false)} />}
    </>
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
    <Dialog title="Change password" onClose={onClose}>
      <form class="form" onSubmit={change}>
        <TextField
          label="Current password"
          error={failure?.code === 'SIGN_IN_FAILED' ? 'The current password is wrong.' : undefined}
          type="password"
          autocomplete="current-password"
          isRequired
          value={current}
          onChange={setCurrent}
        />
        <TextField
          label="New password"
          hint="At least 12 characters. All other sessions end."
          type="password"
          autocomplete="new-password"
          isRequired
          minLength={12}
          value={password}
          onChange={setPassword}
        />
        {failure !== undefined && failure.code !== 'SIGN_IN_FAILED' && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            Change password
          </button>
        </div>
      </form>
    </Dialog>
  );
}
