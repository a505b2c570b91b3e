import { useState } from 'preact/hooks';
import { ask } from '../../api';
import { exactUsd } from '../../money';
import { ActDialog } from '../../parts/act-dialog';
import { Field } from '../../parts/field';
import { AmountField, ExpiryField, TextField } from '../../parts/text-field';
import type { ApiKey, NewApiKey } from '../../shapes';
import { fromLocalInput, toLocalInput } from '../../times';
import { ModelChoice } from './model-choice';

interface Props {
  /** The key to edit; undefined to create one. */
  readonly apiKey: ApiKey | undefined;
  /** The path of the key, or of the list in which it is created. */
  readonly path: string;
  /** The names of the models to choose from. */
  readonly models: readonly string[];
  readonly onSaved: (saved: ApiKey | NewApiKey) => void;
  readonly onClose: () => void;
}

const LIMITS = [
  { name: 'balanceLimit', label: 'Total' },
  { name: 'dailyLimit', label: 'Per day' },
  { name: 'monthlyLimit', label: 'Per month' },
] as const;

const RATES = [
  { name: 'callsPerMinute', label: 'Calls per minute' },
  { name: 'tokensPerMinute', label: 'Tokens per minute' },
] as const;

const FIELDS = ['name', 'expiresAt', 'allowedAddresses', ...[...LIMITS, ...RATES].map(({ name }) => name)];

type Texts = Readonly<Record<(typeof LIMITS)[number]['name'] | (typeof RATES)[number]['name'], string>>;

/** Creates or edits a key. An empty field means no limit. */
export function KeyDialog({ apiKey, path, models, onSaved, onClose }: Props) {
  const [name, setName] = useState(apiKey?.name ?? '');
  const [texts, setTexts] = useState<Texts>(() => textsOf(apiKey));
  const [chosen, setChosen] = useState<readonly string[] | null>(apiKey?.allowedModels ?? null);
  const [expiry, setExpiry] = useState(() => expiryOf(apiKey));
  const [addresses, setAddresses] = useState(() => apiKey?.allowedAddresses?.join(' ') ?? '');

  const changes = { ...changedOf(texts), allowedModels: chosen, allowedAddresses: listOf(addresses) };
  const expiresAt = fromLocalInput(expiry) ?? null;
  // A past expiry may stay, but the gateway rejects it if it is sent again.
  const isMoved = expiry !== expiryOf(apiKey);
  const save = () =>
    apiKey === undefined
      ? ask<NewApiKey>(path, { method: 'POST', body: { name, ...givenOnly({ ...changes, expiresAt }) } })
      : ask<ApiKey>(path, { method: 'PATCH', body: { name, ...changes, ...(isMoved && { expiresAt }) } });
  const bind = (field: keyof Texts) => ({
    value: texts[field],
    onChange: (value: string) => setTexts({ ...texts, [field]: value.trim() }),
  });
  return (
    <ActDialog
      title={apiKey === undefined ? 'Create a key' : 'Edit the key'}
      verb={apiKey === undefined ? 'Create the key' : 'Save'}
      isComplete={chosen?.length !== 0}
      act={save}
      onDone={onSaved}
      onClose={onClose}
      fields={FIELDS}
    >
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            hint="The person or program that uses the key."
            isRequired
            value={name}
            onChange={setName}
            error={errorOf('name')}
          />
          <fieldset class="group">
            <legend>Spending limit</legend>
            <div class="fields">
              {LIMITS.map((limit) => (
                <AmountField key={limit.name} label={limit.label} {...bind(limit.name)} error={errorOf(limit.name)} />
              ))}
            </div>
          </fieldset>
          <fieldset class="group">
            <legend>Rate limit</legend>
            <div class="fields">
              {RATES.map((rate) => (
                <CountField key={rate.name} label={rate.label} {...bind(rate.name)} error={errorOf(rate.name)} />
              ))}
            </div>
          </fieldset>
          <fieldset class="group">
            <legend>Access</legend>
            <ExpiryField label="Expires" value={expiry} onChange={setExpiry} error={errorOf('expiresAt')} />
            <TextField
              label="Allowed addresses"
              hint="Put spaces between them, such as 203.0.113.0/24 2001:db8::1. Leave empty for all."
              placeholder="All"
              maxLength={6_100}
              value={addresses}
              onChange={setAddresses}
              error={errorOf('allowedAddresses')}
            />
          </fieldset>
          <ModelChoice names={models} chosen={chosen} onChange={setChosen} />
        </>
      )}
    </ActDialog>
  );
}

interface CountProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly error: string | undefined;
}

function CountField({ label, value, onChange, error }: CountProps) {
  return (
    <Field label={label} error={error}>
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode="numeric"
          pattern="[1-9]\d{0,8}"
          title="A whole number from 1"
          placeholder="None"
          autocomplete="off"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function textsOf(key: ApiKey | undefined): Texts {
  const usd = (amount: string | null | undefined) =>
    amount === null || amount === undefined ? '' : exactUsd(amount).replace(/[$,]/g, '');
  const count = (number: number | null | undefined) => (number === null || number === undefined ? '' : String(number));
  return {
    balanceLimit: usd(key?.balanceLimit),
    dailyLimit: usd(key?.dailyLimit),
    monthlyLimit: usd(key?.monthlyLimit),
    callsPerMinute: count(key?.callsPerMinute),
    tokensPerMinute: count(key?.tokensPerMinute),
  };
}

/** Returns every limit in the form of the interface; null where the field is empty. */
function changedOf(texts: Texts): Record<string, string | number | null> {
  return {
    ...Object.fromEntries(LIMITS.map(({ name }) => [name, texts[name] === '' ? null : texts[name]])),
    ...Object.fromEntries(RATES.map(({ name }) => [name, texts[name] === '' ? null : Number(texts[name])])),
  };
}

function givenOnly(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function expiryOf(key: ApiKey | undefined): string {
  return key === undefined || key.expiresAt === null ? '' : toLocalInput(key.expiresAt);
}

/** Reads a list separated by spaces or commas; null if it is empty. */
function listOf(text: string): readonly string[] | null {
  const list = text.split(/[\s,]+/).filter((each) => each !== '');
  return list.length === 0 ? null : list;
}
