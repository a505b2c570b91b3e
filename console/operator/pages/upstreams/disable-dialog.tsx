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
      act={() => ask(`${pathOf(upstream)}/eject`, { method: 'POST', body: reason === '' ? {} : { reason } })}
      onDone={onDone}
      onClose={onClose}
      fields={['reason']}
    >
      {(errorOf) => (
        <>
          <p>
            No node asks <strong class="mono">{upstream.name}</strong> any more, until it is enabled. Calls under way
            end as they would.
          </p>
          <p class="quiet">Models that only this upstream serves are refused meanwhile.</p>
          <TextField
            label="Reason"
            hint="Others see it beside the upstream, and in the audit log."
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
      act={() => ask(`${pathOf(upstream)}/restore`, { method: 'POST', body: {} })}
      onDone={onDone}
      onClose={onClose}
    >
      {() => (
        <p>
          Every node asks <strong class="mono">{upstream.name}</strong> again, and forgets its failures.
        </p>
      )}
    </ActDialog>
  );
}
