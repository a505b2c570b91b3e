import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { announce } from '../../parts/announce';
import { Dialog } from '../../parts/dialog';
import { Failed } from '../../parts/states';
import { toFailure } from '../../resource';
import type { Sandbox } from '../../shapes';

interface Props {
  readonly sandbox: Sandbox;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function TerminateDialog({ sandbox, onClose, onDone }: Props) {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const terminate = async () => {
    setBusy(true);
    try {
      await ask(`sandboxes/${sandbox.id}`, { method: 'DELETE' });
      announce('The sandbox is being terminated.');
      onDone();
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Terminate the sandbox?" onClose={onClose}>
      <div class="form">
        <p>
          <strong>{sandbox.offeringName}</strong> <code class="quiet">{sandbox.id}</code>
        </p>
        <p class="quiet">
          Its files and processes are lost and cannot be restored. Billing stops when the supplier confirms the end. The
          rest of the hold is released.
        </p>
        {failure !== undefined && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Keep it
          </button>
          <button type="button" class="button destructive" disabled={isBusy} onClick={terminate}>
            Terminate
          </button>
        </div>
      </div>
    </Dialog>
  );
}
