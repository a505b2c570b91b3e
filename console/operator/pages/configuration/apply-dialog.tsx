import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure } from '../../../api';
import { announce } from '../../../parts/announce';
import { Dialog } from '../../../parts/dialog';
import { Field } from '../../../parts/field';
import { Failed } from '../../../parts/states';
import { TextField } from '../../../parts/text-field';
import { toFailure } from '../../../resource';
import type { ConfigChange, Problem, Revision } from '../../shapes';
import { Changes, Objections, Problems } from './changes';

interface Props {
  /** The newest revision when the dialog opened. */
  readonly newest: number | undefined;
  /** The revision to roll back to; absent when the operator enters another text. */
  readonly restores?: Revision;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Checks a configuration, shows what it changes, and applies it to every node. Nothing is applied unchecked. */
export function ApplyDialog({ newest, restores, onClose, onDone }: Props) {
  const [text, setText] = useState<string>();
  const [note, setNote] = useState('');
  const [checked, setChecked] = useState<ConfigChange>();
  /** The newest revision that the operator has seen, or 0. A change is refused if there is a newer one. */
  const [base, setBase] = useState(newest ?? 0);
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);

  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once
  useEffect(() => {
    if (restores !== undefined) void send(true);
    else void readNewest(newest).then(setText, (error: unknown) => setFailure(toFailure(error)));
  }, []);

  const send = async (dryRun: boolean) => {
    setBusy(true);
    setFailure(undefined);
    const force = (checked?.objections.length ?? 0) > 0;
    const more = { dryRun, force: !dryRun && force, ...(note !== '' && { note }) };
    // The check of a rollback shows the newest revision for the first time.
    const isFirstSight = restores !== undefined && dryRun;
    try {
      const path = restores === undefined ? '' : `/${restores.number}/rollback`;
      const change = await ask<ConfigChange>(`/admin/v1/config/revisions${path}`, {
        method: 'POST',
        body: restores === undefined ? { text: text ?? '', ...more } : more,
        ...(!isFirstSight && { ifMatch: `"${base}"` }),
      });
      if (dryRun) {
        setBase(change.newest);
        return setChecked(change);
      }
      announce(`Revision ${change.number} is applied.`);
      onDone();
    } catch (error) {
      const failure = toFailure(error);
      setFailure(failure);
      if (failure.code !== 'PRECONDITION_FAILED') return;
      // The next check shows what the change does to the newer revision.
      setBase(detailsOf<{ number: number }>(failure).number ?? 0);
      setChecked(undefined);
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    void send(checked === undefined);
  };
  const isForced = checked !== undefined && checked.objections.length > 0;
  return (
    <Dialog
      title={restores === undefined ? 'Change the configuration' : `Roll back to revision ${restores.number}?`}
      kind="sheet"
      onClose={onClose}
    >
      <form class="form" onSubmit={submit}>
        {restores === undefined && checked === undefined && (
          <Field
            label="gateway.config.yml"
            hint="Variables such as ${NAME} stay as they are. You see the changes before you apply them."
          >
            {(control) => (
              <textarea
                {...control}
                class="mono config-text"
                spellcheck={false}
                disabled={text === undefined}
                value={text ?? ''}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            )}
          </Field>
        )}
        {checked !== undefined && (
          <>
            <h3>What it changes</h3>
            <Changes changes={checked.changes} />
            {checked.warnings.length > 0 && <Problems problems={checked.warnings} />}
            <Objections objections={checked.objections} />
            <TextField label="Note" hint="The history shows it." value={note} onChange={setNote} />
          </>
        )}
        {failure !== undefined && <ChangeFailure failure={failure} />}
        <div class="dialog-feet">
          {checked !== undefined && restores === undefined && (
            <button type="button" class="button" onClick={() => setChecked(undefined)}>
              Back to the text
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isForced ? 'button destructive' : 'button primary'}
            disabled={isBusy || (restores === undefined && text === undefined)}
          >
            {checked === undefined ? 'Check' : isForced ? 'Apply despite objections' : 'Apply to every node'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

async function readNewest(newest: number | undefined): Promise<string> {
  if (newest === undefined) return '';
  return (await ask<{ text: string }>(`/admin/v1/config/revisions/${newest}`)).text;
}

function ChangeFailure({ failure }: { readonly failure: Failure }) {
  const { problems = [] } = detailsOf<{ problems: readonly Problem[] }>(failure);
  return (
    <>
      <Failed failure={failure} />
      {problems.length > 0 && <Problems problems={problems} />}
    </>
  );
}

function detailsOf<T>({ more: { details } }: Failure): Partial<T> {
  return (details ?? {}) as Partial<T>;
}
