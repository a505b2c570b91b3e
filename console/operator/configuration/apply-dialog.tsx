import { useEffect, useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { announce } from '../../parts/announce';
import { Button } from '../../parts/button';
import { Dialog, hide } from '../../parts/dialog';
import { Field, Input } from '../../parts/field';
import { Failed } from '../../parts/states';
import { Badge } from '../../parts/values';
import { toFailure } from '../../resource';
import type { ConfigChange, Problem, Revision } from '../shapes';

interface Props {
  /** The newest revision when the dialog opened. */
  readonly newest: number | undefined;
  /** The revision to roll back to; absent if the operator enters a new text. */
  readonly restores?: Revision;
}

/** Checks a configuration, shows its changes, and applies it to every node. An unchecked configuration cannot be applied. */
export function ApplyDialog({ newest, restores }: Props) {
  const [text, setText] = useState<string>();
  const [note, setNote] = useState('');
  const [checked, setChecked] = useState<ConfigChange>();
  /** The newest revision that the operator has seen, or 0. The gateway rejects a change if a newer one exists. */
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
    // The first check of a rollback sends no If-Match, because only its result shows the newest revision.
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
      hide();
    } catch (error) {
      const failure = toFailure(error);
      setFailure(failure);
      if (failure.code !== 'PRECONDITION_FAILED') return;
      // Makes the next check compare with the newer revision, which was applied meanwhile.
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
    >
      <form class="form stack" onSubmit={submit}>
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
            <Input label="Note" hint="The history shows it." value={note} onChange={setNote} />
          </>
        )}
        {failure !== undefined && <ChangeFailure failure={failure} />}
        <div class="dialog-feet row">
          {checked !== undefined && restores === undefined && (
            <Button onClick={() => setChecked(undefined)}>Back to the text</Button>
          )}
          <Button onClick={hide}>Cancel</Button>
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

/** The list of what a new configuration changes in meaning; differences in notation are not shown. */
export function Changes({ changes }: Pick<ConfigChange, 'changes'>) {
  if (changes.length === 0) return <p class="quiet">This text changes nothing.</p>;
  return (
    <ul class="changes" aria-label="What it changes">
      {changes.map(({ what, before, after }) => (
        <li key={what}>
          <span class="mono">{what}</span>
          {before !== null && <del class="mono">{before}</del>}
          {after !== null && <ins class="mono">{after}</ins>}
        </li>
      ))}
    </ul>
  );
}

export function Problems({ problems }: { readonly problems: readonly Problem[] }) {
  return (
    <ul class="problems">
      {problems.map(({ file, line, column, message }) => (
        <li key={`${file} ${line} ${column} ${message}`}>
          <span class="mono quiet">
            {file}
            {line !== undefined && `:${line}`}
            {column !== undefined && `:${column}`}
          </span>{' '}
          {message}
        </li>
      ))}
    </ul>
  );
}

/** The gateway's objections to a change. With any of them, the operator must choose force to apply the change. */
function Objections({ objections }: Pick<ConfigChange, 'objections'>) {
  if (objections.length === 0) return null;
  return (
    <div class="note warn">
      <Badge tone="warn">Objections</Badge>
      <ul>
        {objections.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </div>
  );
}
