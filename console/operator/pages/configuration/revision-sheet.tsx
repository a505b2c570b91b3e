import { useState } from 'preact/hooks';
import { Dialog } from '../../../parts/dialog';
import { Field } from '../../../parts/field';
import { Bone, Failed } from '../../../parts/states';
import { useResource } from '../../../resource';
import { showWhole } from '../../../times';
import { linesBetween } from '../../lines-between';
import type { Revision } from '../../shapes';

type WholeRevision = Revision & { readonly text: string };

interface Props {
  readonly revision: Revision;
  readonly all: readonly Revision[];
  readonly onClose: () => void;
}

/** An applied configuration: its lines that differ from those of an earlier one. */
export function RevisionSheet({ revision, all, onClose }: Props) {
  const earlier = all.filter(({ number }) => number < revision.number);
  const [base, setBase] = useState(earlier[0]?.number);
  const own = useResource<WholeRevision>(`/admin/v1/config/revisions/${revision.number}`);
  const other = useResource<WholeRevision>(base === undefined ? undefined : `/admin/v1/config/revisions/${base}`);
  const failure = own.failure ?? other.failure;
  const isThere = own.data !== undefined && (base === undefined || other.data?.number === base);
  return (
    <Dialog title={`Revision ${revision.number}`} kind="sheet" onClose={onClose}>
      <div class="form">
        <p class="quiet small">
          {revision.actor}, {showWhole(revision.createdAt)}
          {revision.note !== null && `: ${revision.note}`}
        </p>
        {earlier.length > 0 && (
          <Field label="Compared with">
            {(control) => (
              <select
                {...control}
                value={base}
                onChange={(event) =>
                  setBase(event.currentTarget.value === '' ? undefined : Number(event.currentTarget.value))
                }
              >
                {earlier.map(({ number, note }) => (
                  <option key={number} value={number}>
                    Revision {number}
                    {note !== null && `: ${note}`}
                  </option>
                ))}
                <option value="">Nothing: all of it</option>
              </select>
            )}
          </Field>
        )}
        {failure !== undefined && <Failed failure={failure} onRetry={own.reload} />}
        {isThere ? (
          <Lines before={base === undefined ? undefined : other.data?.text} after={own.data.text} />
        ) : (
          failure === undefined && <Bone width="24ch" />
        )}
      </div>
    </Dialog>
  );
}

function Lines({ before, after }: { readonly before: string | undefined; readonly after: string }) {
  const lines =
    before === undefined
      ? after.split('\n').map((text) => ({ is: 'same' as const, text }))
      : linesBetween(before, after);
  if (lines.length === 0) return <p class="quiet">The text is the same.</p>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section needs a heading
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by the keyboard
    <div class="lines mono" role="region" aria-label="Lines" tabIndex={0}>
      {lines.map(({ is, text }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other key
        <div key={at} class={`text-line is-${is}`}>
          <span class="unseen">{is === 'gone' ? 'Removed: ' : is === 'new' ? 'Added: ' : ''}</span>
          {text === '' ? ' ' : text}
        </div>
      ))}
    </div>
  );
}
