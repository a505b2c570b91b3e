import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../../api';
import { Badge } from '../../../parts/badge';
import { Dialog } from '../../../parts/dialog';
import { Fact } from '../../../parts/fact';
import { Field } from '../../../parts/field';
import { Failed } from '../../../parts/states';
import { toFailure } from '../../../resource';
import { showDuration } from '../../../times';
import type { Tested, Upstream } from '../../shapes';

/** Makes one small real call and shows its result. */
export function TestDialog({ upstream, onClose }: { readonly upstream: Upstream; readonly onClose: () => void }) {
  const [model, setModel] = useState('');
  const [tested, setTested] = useState<Tested>();
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const test = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    setTested(undefined);
    try {
      const path = `/admin/v1/upstreams/${encodeURIComponent(upstream.name)}/test`;
      setTested(await ask<Tested>(path, { method: 'POST', body: model === '' ? {} : { model } }));
    } catch (error) {
      setFailure(toFailure(error));
    }
    setBusy(false);
  };
  return (
    <Dialog title={`Test ${upstream.name}`} onClose={onClose}>
      <form class="form" onSubmit={test}>
        <p class="quiet">The test makes one small real call. The vendor charges you for it, and no account pays.</p>
        <Field label="Model">
          {(control) => (
            <select {...control} value={model} onChange={(event) => setModel(event.currentTarget.value)}>
              <option value="">The cheapest</option>
              {upstream.models.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <div aria-live="polite">{tested !== undefined && <Outcome tested={tested} />}</div>
        {failure !== undefined && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            {isBusy ? 'Calling …' : tested === undefined ? 'Test' : 'Test again'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Outcome({ tested: { ok, status, ms, model, protocol, problem } }: { readonly tested: Tested }) {
  return (
    <dl class="facts">
      <Fact name="Outcome">
        <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'Answered' : 'Failed'}</Badge>
      </Fact>
      {problem !== null && <Fact name="Problem">{problem}</Fact>}
      <Fact name="Status">{status ?? 'no answer'}</Fact>
      <Fact name="Duration">{showDuration(ms)}</Fact>
      <Fact name="Call">
        <span class="mono">{model}</span>, {protocol}
      </Fact>
    </dl>
  );
}
