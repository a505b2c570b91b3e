import { useState } from 'preact/hooks';
import { refetch } from '../../api';
import { Dialog } from '../../parts/dialog';
import { Input } from '../../parts/field';
import { Bone, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { showWhole } from '../../times';
import type { Revision } from '../shapes';

type WholeRevision = Revision & { readonly text: string };

interface Props {
  readonly revision: Revision;
  readonly all: readonly Revision[];
}

/** A sheet with an applied revision: its lines that differ from those of an earlier revision. */
export function RevisionSheet({ revision, all }: Props) {
  const earlier = all.filter(({ number }) => number < revision.number);
  const [base, setBase] = useState(earlier[0]?.number);
  const own = useResource<WholeRevision>(`/admin/v1/config/revisions/${revision.number}`);
  const other = useResource<WholeRevision>(base === undefined ? undefined : `/admin/v1/config/revisions/${base}`);
  const failure = own.failure ?? other.failure;
  const isThere = own.data !== undefined && (base === undefined || other.data?.number === base);
  return (
    <Dialog title={`Revision ${revision.number}`} kind="sheet">
      <div class="form stack">
        <p class="quiet small">
          {revision.actor}, {showWhole(revision.createdAt)}
          {revision.note !== null && `: ${revision.note}`}
        </p>
        {earlier.length > 0 && (
          <Input
            label="Compared with"
            value={String(base ?? '')}
            options={[
              ...earlier.map(({ number, note }) => ({
                value: String(number),
                text: `Revision ${number}${note === null ? '' : `: ${note}`}`,
              })),
              { value: '', text: 'Nothing: all of it' },
            ]}
            onChange={(value) => setBase(value === '' ? undefined : Number(value))}
          />
        )}
        {failure !== undefined && <Failed failure={failure} onRetry={refetch} />}
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
      ? after.split('\n').map((text) => ({ kind: 'same' as const, text }))
      : linesBetween(before, after);
  if (lines.length === 0) return <p class="quiet">The text is the same.</p>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section needs a heading
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by the keyboard
    <div class="lines mono" role="region" aria-label="Lines" tabIndex={0}>
      {lines.map(({ kind, text }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other key
        <div key={at} class={`text-line is-${kind}`}>
          <span class="unseen">{kind === 'gone' ? 'Removed: ' : kind === 'new' ? 'Added: ' : ''}</span>
          {text === '' ? ' ' : text}
        </div>
      ))}
    </div>
  );
}

export interface Line {
  /** `gap` stands for unchanged lines that are not shown. */
  readonly kind: 'same' | 'gone' | 'new' | 'gap';
  readonly text: string;
}

/** The number of unchanged lines shown before and after a difference. */
const AROUND = 3;

/** Returns the lines in which two texts differ, with some unchanged lines around them; none if the texts are equal. */
function linesBetween(before: string, after: string): readonly Line[] {
  const all = compare(before.split('\n'), after.split('\n'));
  const isNear = all.map((_, at) =>
    all.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== 'same'),
  );
  return all.flatMap((line, at) => {
    if (isNear[at]) return [line];
    return isNear[at - 1] && isNear.indexOf(true, at) !== -1 ? [{ kind: 'gap' as const, text: '⋯' }] : [];
  });
}

/** Compares two texts line by line. Skips their common beginning and end first, because the comparison is costly. */
function compare(before: readonly string[], after: readonly string[]): readonly Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [gone, added] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const same = (lines: readonly string[]) => lines.map((text): Line => ({ kind: 'same', text }));
  return [...same(before.slice(0, start)), ...between(gone, added), ...same(before.slice(before.length - end))];
}

function between(gone: readonly string[], added: readonly string[]): readonly Line[] {
  // lengths[i][j] is the length of the longest common subsequence of `gone` from line i on and `added` from line j on.
  const lengths = Array.from({ length: gone.length + 1 }, () => new Uint32Array(added.length + 1));
  const at = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  for (let i = gone.length - 1; i >= 0; i -= 1) {
    const row = lengths[i];
    if (row === undefined) continue;
    for (let j = added.length - 1; j >= 0; j -= 1)
      row[j] = gone[i] === added[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < gone.length || j < added.length) {
    const [one, two] = [gone[i], added[j]];
    if (one !== undefined && one === two) {
      lines.push({ kind: 'same', text: one });
      i += 1;
      j += 1;
    } else if (one !== undefined && (two === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'gone', text: one });
      i += 1;
    } else {
      lines.push({ kind: 'new', text: two ?? '' });
      j += 1;
    }
  }
  return lines;
}
