import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { announce } from '../../parts/announce';
import { Dialog } from '../../parts/dialog';
import { Failed } from '../../parts/states';
import { toFailure } from '../../resource';
import type { ApiKey } from '../../shapes';
import { showAgo } from '../../times';

interface Props {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

export function RevokeDialog({ apiKey, onClose, onRevoked }: Props) {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    try {
      await ask(`keys/${apiKey.id}`, { method: 'DELETE' });
      announce(`${apiKey.name} is revoked.`);
      onRevoked();
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Revoke the key?" onClose={onClose}>
      <div class="form">
        <p>
          <strong>{apiKey.name}</strong>{' '}
          <span class="mono quiet">
            {apiKey.prefix}…{apiKey.suffix}
          </span>{' '}
          {apiKey.lastUsedAt === null ? 'was never used.' : `was last used ${showAgo(apiKey.lastUsedAt)}.`}
        </p>
        <p class="quiet">Its next call is refused, and it cannot be brought back. Its usage records stay.</p>
        {failure !== undefined && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Keep it
          </button>
          <button type="button" class="button destructive" disabled={isBusy} onClick={revoke}>
            Revoke the key
          </button>
        </div>
      </div>
    </Dialog>
  );
}
