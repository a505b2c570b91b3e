import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Failed } from '../../parts/states';
import { toFailure } from '../../resource';
import type { ApiKey, NewApiKey } from '../../shapes';

interface Props {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onMade: (made: NewApiKey) => void;
}

const GRACES = [
  { seconds: 86_400, text: 'For a day' },
  { seconds: 7 * 86_400, text: 'For a week' },
  { seconds: 3_600, text: 'For an hour' },
  { seconds: 0, text: 'No longer' },
] as const;

/** Gives a key another secret; the one before works on for a while, so that programs can be moved to the new one. */
export function RotateDialog({ apiKey, onClose, onMade }: Props) {
  const [graceSeconds, setGrace] = useState<number>(GRACES[0].seconds);
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  const rotate = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      onMade(await ask<NewApiKey>(`keys/${apiKey.id}/rotate`, { method: 'POST', body: { graceSeconds } }));
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Rotate the key" onClose={onClose}>
      <form class="form" onSubmit={rotate}>
        <p>
          <strong>{apiKey.name}</strong>{' '}
          <span class="mono quiet">
            {apiKey.prefix}…{apiKey.suffix}
          </span>{' '}
          gets a new secret. Its limits, its spending and its usage records stay.
        </p>
        <Field label="The old secret works" hint="A secret that was replaced before ends now.">
          {(control) => (
            <select {...control} value={graceSeconds} onChange={(event) => setGrace(Number(event.currentTarget.value))}>
              {GRACES.map(({ seconds, text }) => (
                <option key={seconds} value={seconds}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
        {failure !== undefined && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            Rotate the key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
