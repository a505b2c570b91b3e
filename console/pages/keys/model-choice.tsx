import { useState } from 'preact/hooks';
import { Segmented } from '../../parts/segmented';

interface Props {
  readonly names: readonly string[];
  /** null allows all models, including future ones. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

/** The most models that are listed without a search field. */
const FEW = 8;

export function ModelChoice({ names: known, chosen, onChange }: Props) {
  const [words, setWords] = useState('');
  // The list includes chosen models that are no longer served, so that they can be removed.
  const names = [...new Set([...known, ...(chosen ?? [])])];
  const shown = names.filter((name) => name.toLowerCase().includes(words.trim().toLowerCase()));
  const toggle = (name: string) =>
    onChange(chosen?.includes(name) ? chosen.filter((each) => each !== name) : [...(chosen ?? []), name]);
  return (
    <fieldset class="group">
      <legend>Models</legend>
      <Segmented
        label="Models that the key may call"
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
          {chosen.length === 0 && <p class="hint">Choose one model at least.</p>}
        </div>
      )}
    </fieldset>
  );
}
