import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': boolean;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  /** A symbol inside the field, before the value, such as a currency sign. */
  readonly sign?: string | undefined;
  readonly children: (control: ControlProps) => ComponentChildren;
}

/** A form control with its label, hint and error. */
export function Field({ label, hint, error, sign, children }: FieldProps) {
  const id = useId();
  const isExplained = hint !== undefined || error !== undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class={sign === undefined ? 'control' : 'control with-sign'}>
        {sign !== undefined && (
          <span class="sign" aria-hidden="true">
            {sign}
          </span>
        )}
        {children({
          id,
          'aria-describedby': isExplained ? `${id}-more` : undefined,
          'aria-invalid': error !== undefined,
        })}
      </div>
      {isExplained && (
        <p id={`${id}-more`} class={error === undefined ? 'quiet small' : 'small is-bad'}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

/** The attributes that each kind of field adds to its `<input>`. */
const KINDS = {
  text: { type: 'text', maxLength: 200 },
  email: { type: 'email', maxLength: 200, autocomplete: 'username' },
  password: { type: 'password', maxLength: 1_000, autocomplete: 'current-password' },
  /** An amount of USD as decimal text. */
  amount: {
    type: 'text',
    inputMode: 'decimal',
    pattern: '\\d+(\\.\\d{1,8})?',
    title: 'Dollars, such as 25 or 0.5',
    placeholder: 'None',
  },
  count: {
    type: 'text',
    inputMode: 'numeric',
    pattern: '[1-9]\\d{0,8}',
    title: 'A whole number from 1',
    placeholder: 'None',
  },
  /** A time in the format of `<input type="datetime-local">`. Empty means never. */
  expiry: { type: 'datetime-local' },
} as const;

/** A field of a form. */
export interface FormField {
  /** The key of the field's value, and the parameter name in errors about the field. */
  readonly name: string;
  readonly label: string;
  readonly kind?: keyof typeof KINDS;
  /** The choices of a field that accepts only fixed values. */
  readonly options?: readonly { readonly value: string; readonly text: string }[];
  /** The field's initial value. Default: empty. */
  readonly value?: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly autocomplete?: 'new-password' | 'off';
  /** Returns whether the form has the field, by the values of the others. Default: always. */
  readonly when?: (values: Values) => boolean;
}

/** Fields with a common heading; `isRow` puts them in one row. */
interface FieldGroup {
  readonly legend: string;
  readonly isRow?: boolean;
  readonly fields: readonly FormField[];
}

export type FormPart = FormField | FieldGroup;
export type Values = Readonly<Record<string, string>>;

function fieldsOf(parts: readonly FormPart[]): readonly FormField[] {
  return parts.flatMap((part) => ('legend' in part ? part.fields : [part]));
}

/** Returns the initial values of a form's fields. */
export function firstValuesOf(parts: readonly FormPart[]): Values {
  return Object.fromEntries(fieldsOf(parts).map(({ name, value = '' }) => [name, value]));
}

/** Returns the values of the shown fields that are not empty. */
export function givenValuesOf(parts: readonly FormPart[], values: Values): Values {
  const given = fieldsOf(parts).filter(({ name, when }) => values[name] && (when?.(values) ?? true));
  return Object.fromEntries(given.map(({ name }) => [name, values[name] ?? '']));
}

interface FieldsProps {
  readonly parts: readonly FormPart[];
  readonly values: Values;
  readonly onChange: (values: Values) => void;
  readonly errorOf?: (name: string) => string | undefined;
}

export function Fields({ parts, values, onChange, errorOf }: FieldsProps) {
  const input = ({ name, when, ...field }: FormField) =>
    when?.(values) === false ? null : (
      <Input
        key={name}
        {...field}
        value={values[name] ?? ''}
        onChange={(value) => onChange({ ...values, [name]: value })}
        error={errorOf?.(name)}
      />
    );
  return (
    <>
      {parts.map((part) =>
        'legend' in part ? (
          <fieldset key={part.legend} class="group stack">
            <legend>{part.legend}</legend>
            {part.isRow ? <div class="fields">{part.fields.map(input)}</div> : part.fields.map(input)}
          </fieldset>
        ) : (
          input(part)
        ),
      )}
    </>
  );
}

interface InputProps extends Omit<FormField, 'name' | 'when'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly error?: string | undefined;
}

export function Input(props: InputProps) {
  const { label, kind = 'text', options, value, onChange, hint, error, isRequired = false, ...own } = props;
  const isTrimmed = kind === 'amount' || kind === 'count';
  return (
    <Field
      label={label}
      hint={hint ?? (kind === 'expiry' ? 'Leave empty for no expiry.' : undefined)}
      error={error}
      sign={kind === 'amount' ? '$' : undefined}
    >
      {(control) =>
        options !== undefined ? (
          <select
            {...control}
            required={isRequired}
            value={value}
            onChange={(event) => onChange(event.currentTarget.value)}
          >
            {options.map(({ value: each, text }) => (
              <option key={each} value={each}>
                {text}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...control}
            autocomplete="off"
            // Casts the attributes, because Preact types each kind of input separately and accepts no union of them.
            {...({ ...KINDS[kind], ...own } as InputHTMLAttributes<HTMLInputElement>)}
            required={isRequired}
            value={value}
            onInput={({ currentTarget }) => onChange(isTrimmed ? currentTarget.value.trim() : currentTarget.value)}
          />
        )
      }
    </Field>
  );
}
