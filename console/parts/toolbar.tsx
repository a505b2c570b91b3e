import { useEffect, useId, useState } from 'preact/hooks';
import { changeQuery, place } from '../router';
import { Icon } from './icon';

const PAUSE_MS = 180;

interface SearchProps {
  readonly label: string;
  /** The text in the empty search field. Default: the label. */
  readonly placeholder?: string;
  readonly value: string;
  /** Called with the text once the user pauses typing. */
  readonly onChange: (value: string) => void;
}

export function Search({ label, placeholder = label, value, onChange }: SearchProps) {
  const [words, setWords] = useState(value);
  // biome-ignore lint/correctness/useExhaustiveDependencies: reports only what is typed
  useEffect(() => {
    if (words === value) return;
    const timer = setTimeout(() => onChange(words), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
    </label>
  );
}

interface QueryProps {
  readonly label: string;
  /** The query parameter of the page's address that holds the searched text. */
  readonly name: string;
}

/** A search field whose text is in the page's address. A new text shows the first page of the list. */
export function QuerySearch({ label, name }: QueryProps) {
  const search = (words: string) => changeQuery({ [name]: words.trim(), page: undefined }, { replace: true });
  return <Search label={label} value={place.value.query.get(name) ?? ''} onChange={search} />;
}

interface Option<V extends string> {
  readonly value: V;
  readonly text: string;
}

interface ChoiceProps<V extends string> {
  readonly label: string;
  readonly options: readonly Option<V>[];
  readonly value: V;
  readonly onChange: (value: V) => void;
}

/** A choice from a few options, all of them visible. */
export function Segmented<V extends string>({ label, options, value, onChange }: ChoiceProps<V>) {
  const name = useId();
  return (
    <fieldset class="segmented">
      <legend class="unseen">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A choice from many options, with its label beside it. */
export function Choice<V extends string>({ label, options, value, onChange }: ChoiceProps<V>) {
  return (
    <label class="inline-control small">
      <span class="quiet">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as V)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns the option that the page's address names. Default: the first option. */
export function chosenIn<V extends string>(name: string, options: readonly [Option<V>, ...Option<V>[]]): V {
  return (options.find(({ value }) => value === place.value.query.get(name)) ?? options[0]).value;
}

interface QueryChoiceProps<V extends string> extends QueryProps {
  readonly options: readonly [Option<V>, ...Option<V>[]];
  /** Whether a new choice replaces the current entry in the browser's history instead of adding one. */
  readonly replace?: boolean;
}

/** A choice whose value is in the page's address. A new choice shows the first page of the list. */
export function QueryChoice<V extends string>({ label, name, options, replace = false }: QueryChoiceProps<V>) {
  const choose = (value: V) =>
    changeQuery({ [name]: value === options[0].value ? undefined : value, page: undefined }, { replace });
  return <Segmented label={label} value={chosenIn(name, options)} options={options} onChange={choose} />;
}
