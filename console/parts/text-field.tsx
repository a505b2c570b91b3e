import { Field } from './field';

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly type?: 'text' | 'email' | 'password';
  /** The value that a browser may fill in. */
  readonly autocomplete?: 'off' | 'username' | 'current-password' | 'new-password';
}

export function TextField(props: Props) {
  const { label, value, onChange, hint, error, isRequired = false, placeholder, minLength, maxLength = 200 } = props;
  const { type = 'text', autocomplete = 'off' } = props;
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <input
          {...control}
          // Preact types each kind of input separately and accepts no union of them.
          type={type as 'text'}
          autocomplete={autocomplete}
          minLength={minLength}
          maxLength={maxLength}
          required={isRequired}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A field for an amount of USD as decimal text. */
export function AmountField({ label, value, onChange, hint, error, isRequired = false, placeholder = 'None' }: Props) {
  return (
    <Field label={label} hint={hint} error={error} sign="$">
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode="decimal"
          pattern="\d+(\.\d{1,8})?"
          title="Dollars, such as 25 or 0.5"
          autocomplete="off"
          required={isRequired}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value.trim())}
        />
      )}
    </Field>
  );
}

/** A field for a moment, in the notation of `<input type="datetime-local">`. Empty means never. */
export function ExpiryField({ label, value, onChange, error }: Props) {
  return (
    <Field label={label} hint="Leave empty for no expiry." error={error}>
      {(control) => (
        <input
          {...control}
          type="datetime-local"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
