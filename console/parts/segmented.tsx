import { useId } from 'preact/hooks';

interface Props<V extends string> {
  readonly label: string;
  readonly options: readonly { readonly value: V; readonly text: string }[];
  readonly value: V;
  readonly onChange: (value: V) => void;
}

/** A choice of one of a few options, all visible. */
export function Segmented<V extends string>({ label, options, value, onChange }: Props<V>) {
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
