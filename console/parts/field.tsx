import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface Props {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
  /** A sign inside the field, before the value. */
  readonly sign?: string;
  readonly children: (control: {
    readonly id: string;
    readonly 'aria-describedby': string | undefined;
    readonly 'aria-invalid': boolean;
  }) => ComponentChildren;
}

/** A control with its label, hint and error. */
export function Field({ label, hint, error, sign, children }: Props) {
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
        <p id={`${id}-more`} class={error === undefined ? 'hint' : 'hint is-wrong'}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}
