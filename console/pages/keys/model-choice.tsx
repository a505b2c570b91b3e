import { useState } from 'preact/hooks';
import { Segmented } from '../../parts/segmented';
import { useResource } from '../../resource';
import type { Catalog } from '../../shapes';

interface Props {
  /** Null: all there are, and all there will be. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

/** So many need no search. */
const FEW = 8;

export function ModelChoice({ chosen, onChange }: Props) {
  const catalog = useResource<Catalog>(chosen === null ? undefined : 'catalog');
  const [words, setWords] = useState('');
  // A name that the catalog knows no more can still be taken away.
  const names = [...new Set([...(catalog.data?.models.map(({ name }) => name) ?? []), ...(chosen ?? [])])];
  const shown = names.filter((name) => name.toLowerCase().includes(words.trim().toLowerCase()));
  const toggle = (name: string) =>
    onChange(chosen?.includes(name) ? chosen.filter((each) => each !== name) : [...(chosen ?? []), name]);
  return (
    <fieldset class="group">
      <legend>Models</legend>
      <Segmented
        label="Models it may call"
        value={chosen === null ? 'all' : 'some'}
        options={[
          { value: 'all', text: 'All models' },
          { value: 'some', text: 'Only these' },
        ]}
        onChange={(value) => onChange(value === 'all' ? null : [])}
      />
      {chosen !== null && (
        <div class="model-choice">
          {names.length > FEW && (
            <input
              type="search"
              aria-label="Search models"
              placeholder="Search"
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
            />
          )}
          <ul>
            {shown.map((name) => (
              <li key={name}>
                <label class="check">
                  <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
                  <span class="mono">{name}</span>
                </label>
              </li>
            ))}
          </ul>
          {chosen.length === 0 && <p class="hint">Choose at least one.</p>}
        </div>
      )}
    </fieldset>
  );
}
