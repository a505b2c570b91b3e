import { useState } from 'preact/hooks';

/** The largest number of choices that the list shows without a search field. */
const FEW = 8;

interface Props {
  /** The accessible name of the search field. */
  readonly search: string;
  readonly options: readonly { readonly value: string; readonly text: string }[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
  /** The CSS classes of the options' texts. */
  readonly look?: string;
}

/** A choice of any number of options. */
export function Checks({ search, options, chosen, onChange, look }: Props) {
  const [words, setWords] = useState('');
  const shown = options.filter(({ text }) => text.toLowerCase().includes(words.trim().toLowerCase()));
  const toggle = (value: string) =>
    onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value]);
  return (
    <div class="checks stack">
      {options.length > FEW && (
        <input
          type="search"
          aria-label={search}
          placeholder="Search"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      )}
      <ul>
        {shown.map(({ value, text }) => (
          <li key={value}>
            <label class="check">
              <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} />
              <span class={look}>{text}</span>
            </label>
          </li>
        ))}
      </ul>
    </div>
  );
}
