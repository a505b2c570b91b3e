import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { LIMIT_NAMES, type LimitName, limitsOf, limitText, RATE_LIMITS, SPENDING_LIMITS } from '../../../key-limits';
import { exactUsd } from '../../../money';
import { Field } from '../../../parts/field';
import { ActDialog } from '../../act-dialog';
import type { ApiKey } from '../../shapes';
import { AmountField } from '../../text-field';

interface Props {
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Changes what a key may spend and ask. An empty limit is none. */
export function KeyLimitsDialog({ apiKey, onClose, onDone }: Props) {
  const [texts, setTexts] = useState<Readonly<Partial<Record<LimitName, string>>>>({});
  const textOf = (name: LimitName) => texts[name] ?? limitText(apiKey[name]);
  const change = (name: LimitName) => (value: string) => setTexts({ ...texts, [name]: value });
  return (
    <ActDialog
      title={`Limits of ${apiKey.name}`}
      verb="Change the limits"
      done="The limits are changed."
      act={() => ask(`/admin/v1/keys/${apiKey.id}`, { method: 'PATCH', body: limitsOf(textOf) })}
      onDone={onDone}
      onClose={onClose}
      fields={LIMIT_NAMES}
    >
      {(errorOf) => (
        <>
          {apiKey.spentUsd !== null && (
            <p class="quiet">
              It has spent {exactUsd(apiKey.spentUsd)}. The next call meets what is set here; an empty limit is none.
            </p>
          )}
          <fieldset class="group">
            <legend>Spending limit</legend>
            <div class="fields">
              {SPENDING_LIMITS.map(({ name, label }) => (
                <AmountField
                  key={name}
                  label={label}
                  value={textOf(name)}
                  onChange={change(name)}
                  error={errorOf(name)}
                />
              ))}
            </div>
          </fieldset>
          <fieldset class="group">
            <legend>Rate limit</legend>
            <div class="fields">
              {RATE_LIMITS.map(({ name, label }) => (
                <Field key={name} label={label} error={errorOf(name)}>
                  {(control) => (
                    <input
                      {...control}
                      type="text"
                      inputMode="numeric"
                      pattern="\d{1,9}"
                      title="A whole number"
                      placeholder="None"
                      autocomplete="off"
                      value={textOf(name)}
                      onInput={(event) => change(name)(event.currentTarget.value.trim())}
                    />
                  )}
                </Field>
              ))}
            </div>
          </fieldset>
        </>
      )}
    </ActDialog>
  );
}

export function RevokeDialog({ apiKey, onClose, onDone }: Props) {
  return (
    <ActDialog
      title="Revoke the key?"
      verb="Revoke the key"
      isDestructive
      keep="Keep it"
      done={`${apiKey.name} is revoked.`}
      act={() => ask(`/admin/v1/keys/${apiKey.id}`, { method: 'DELETE' })}
      onDone={onDone}
      onClose={onClose}
    >
      {() => (
        <>
          <p>
            <strong>{apiKey.name}</strong>{' '}
            <span class="mono quiet">
              {apiKey.prefix}…{apiKey.suffix}
            </span>
          </p>
          <p class="quiet">No node takes it any more, and it cannot be brought back. Its usage records stay.</p>
        </>
      )}
    </ActDialog>
  );
}
