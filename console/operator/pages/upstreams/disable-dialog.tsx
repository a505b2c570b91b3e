import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { ActDialog } from '../../../parts/act-dialog';
import { TextField } from '../../../parts/text-field';
import type { Upstream } from '../../shapes';

interface Props {
  readonly upstream: Upstream;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const pathOf = ({ name }: Upstream) => `/admin/v1/upstreams/${encodeURIComponent(name)}`;

export function DisableDialog({ upstream, onClose, onDone }: Props) {
  const [reason, setReason] = useState('');
  return (
    <ActDialog
      title="Disable the upstream?"
      verb="Disable"
      isDestructive
      keep="Keep it"
      done={`${upstream.name} is disabled.`}
      act={() => ask(`${pathOf(upstream)}/disable`, { method: 'POST', body: reason === '' ? {} : { reason } })}
      onDone={onDone}
      onClose={onClose}
      fields={['reason']}
    >
      {(errorOf) => (
        <>
          <p>
            Every node stops sending calls to <strong class="mono">{upstream.name}</strong> until you enable it. Running
            calls continue to their end.
          </p>
          <p class="quiet">The gateway refuses calls of models that only this upstream serves.</p>
          <TextField
            label="Reason"
            hint="The page shows it beside the upstream and in the audit log."
            value={reason}
            onChange={setReason}
            error={errorOf('reason')}
          />
        </>
      )}
    </ActDialog>
  );
}

export function EnableDialog({ upstream, onClose, onDone }: Props) {
  return (
    <ActDialog
      title="Enable the upstream?"
      verb="Enable"
      done={`${upstream.name} is enabled.`}
      act={() => ask(`${pathOf(upstream)}/enable`, { method: 'POST', body: {} })}
      onDone={onDone}
      onClose={onClose}
    >
      {() => (
        <p>
          Every node sends calls to <strong class="mono">{upstream.name}</strong> again, and forgets its failures.
        </p>
      )}
    </ActDialog>
  );
}
