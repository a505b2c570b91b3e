import { Badge } from '../../../parts/badge';
import type { ConfigChange, Problem } from '../../shapes';

/** The changes in meaning that another configuration makes. */
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

/** The objections to a change, which then needs force to be applied. */
export function Objections({ objections }: Pick<ConfigChange, 'objections'>) {
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
