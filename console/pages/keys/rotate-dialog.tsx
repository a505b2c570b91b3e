import { useState } from 'preact/hooks';
import { ask } from '../../api';
import { ActDialog } from '../../parts/act-dialog';
import { Field } from '../../parts/field';
import type { ApiKey, NewApiKey } from '../../shapes';
import { KeyName } from './key-name';

interface Props {
  readonly apiKey: ApiKey;
  /** The path of the key. */
  readonly path: string;
  readonly onMade: (made: NewApiKey) => void;
  readonly onClose: () => void;
}

const GRACES = [
  { seconds: 86_400, text: '1 day' },
  { seconds: 7 * 86_400, text: '1 week' },
  { seconds: 30 * 86_400, text: '30 days' },
  { seconds: 3_600, text: '1 hour' },
  { seconds: 0, text: 'Stop it now' },
] as const;

/** Gives a key a new secret. The old one works during the grace period, so that programs can switch to the new one. */
export function RotateDialog({ apiKey, path, onMade, onClose }: Props) {
  const [graceSeconds, setGrace] = useState<number>(GRACES[0].seconds);
  return (
    <ActDialog
      title="Rotate the key"
      verb="Rotate the key"
      act={() => ask<NewApiKey>(`${path}/rotate`, { method: 'POST', body: { graceSeconds } })}
      onDone={onMade}
      onClose={onClose}
    >
      {() => (
        <>
          <p>
            <KeyName apiKey={apiKey} /> gets a new secret. Its limits, spending and usage records stay.
          </p>
          <Field
            label="The old secret works for"
            hint="A key has one old secret at most. An earlier one stops working now."
          >
            {(control) => (
              <select
                {...control}
                value={graceSeconds}
                onChange={(event) => setGrace(Number(event.currentTarget.value))}
              >
                {GRACES.map(({ seconds, text }) => (
                  <option key={seconds} value={seconds}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </>
      )}
    </ActDialog>
  );
}
