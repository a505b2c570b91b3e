import { useState } from 'preact/hooks';
import { ask } from '../../../api';
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

const LIMITS = [
  { name: 'balanceLimit', label: 'In all' },
  { name: 'dailyLimit', label: 'A day' },
  { name: 'monthlyLimit', label: 'A month' },
] as const;

const RATES = [
  { name: 'callsPerMinute', label: 'Calls a minute' },
  { name: 'tokensPerMinute', label: 'Tokens a minute' },
] as const;

type Limit = (typeof LIMITS)[number]['name'] | (typeof RATES)[number]['name'];

/** Changes what a key may spend and ask. An empty limit is none. */
export function KeyLimitsDialog({ apiKey, onClose, onDone }: Props) {
  const [texts, setTexts] = useState<Readonly<Partial<Record<Limit, string>>>>({});
  const textOf = (name: Limit) => texts[name] ?? shown(apiKey[name]);
  const change = (name: Limit) => (value: string) => setTexts({ ...texts, [name]: value });
  const body = {
    ...Object.fromEntries(LIMITS.map(({ name }) => [name, textOf(name) === '' ? null : textOf(name)])),
    ...Object.fromEntries(RATES.map(({ name }) => [name, textOf(name) === '' ? null : Number(textOf(name))])),
  };
  return (
    <ActDialog
      title={`Limits of ${apiKey.name}`}
      verb="Change the limits"
      done="The limits are changed."
      act={() => ask(`/admin/v1/keys/${apiKey.id}`, { method: 'PATCH', body })}
      onDone={onDone}
      onClose={onClose}
      fields={[...LIMITS, ...RATES].map(({ name }) => name)}
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
              {LIMITS.map(({ name, label }) => (
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
              {RATES.map(({ name, label }) => (
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

/** Without the zeros behind the last digit that counts. */
function shown(limit: string | number | null): string {
  if (typeof limit !== 'string') return limit === null ? '' : String(limit);
  return limit.replace(/(\.\d\d\d*?)0+$/, '$1');
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
