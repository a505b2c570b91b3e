import { useState } from 'preact/hooks';
import { ask } from '../../api';
import { exactUsd } from '../../money';
import { DecisionDialog, decide, showDialog, showSecret } from '../../parts/dialog';
import type { FormField, FormPart, Values } from '../../parts/field';
import { Segmented } from '../../parts/toolbar';
import { useResource } from '../../resource';
import type { ApiKey, Catalog, NewApiKey } from '../../shapes';
import { fromLocalInput, showAgo, toLocalInput } from '../../times';

const AMOUNTS = { balanceLimit: 'Total', dailyLimit: 'Per day', monthlyLimit: 'Per month' } as const;
const COUNTS = { callsPerMinute: 'Calls per minute', tokensPerMinute: 'Tokens per minute' } as const;
type Amount = keyof typeof AMOUNTS;
type Count = keyof typeof COUNTS;

/** The API paths of keys, and of the models that a key can be limited to. */
export interface KeyPaths {
  readonly keys: string;
  readonly ofKey: (key: ApiKey) => string;
  readonly models: string;
}

/** An answer that lists models: the customer's catalog, or the operator's list of upstreams. */
type ModelSource = Partial<Pick<Catalog, 'models'>> & {
  readonly items?: readonly { readonly models: readonly { readonly name: string }[] }[];
};

export function openKeyDialog(paths: KeyPaths, key?: ApiKey): void {
  showDialog(<KeyDialog paths={paths} apiKey={key} />);
}

/** A dialog that creates or edits a key. An empty field means no limit. */
function KeyDialog({ paths, apiKey: key }: { readonly paths: KeyPaths; readonly apiKey: ApiKey | undefined }) {
  const { data } = useResource<ModelSource>(paths.models);
  const names = (data?.models ?? data?.items?.flatMap(({ models }) => models) ?? []).map(({ name }) => name);
  const [allowedModels, setAllowed] = useState<readonly string[] | null>(key?.allowedModels ?? null);
  const expiry = key === undefined || key.expiresAt === null ? '' : toLocalInput(key.expiresAt);

  const save = async ({ name, expiresAt: until = '', allowedAddresses, ...texts }: Values) => {
    const numbers = Object.keys(COUNTS).map((count) => [count, count in texts ? Number(texts[count]) : null]);
    const changes = {
      ...Object.fromEntries(Object.keys(AMOUNTS).map((amount) => [amount, texts[amount] ?? null])),
      ...Object.fromEntries(numbers),
      allowedModels,
      allowedAddresses: listOf(allowedAddresses),
    };
    const expiresAt = fromLocalInput(until) ?? null;
    if (key === undefined) {
      const given = Object.entries({ ...changes, expiresAt }).filter(([, value]) => value !== null);
      return ask<NewApiKey>(paths.keys, { method: 'POST', body: { name, ...Object.fromEntries(given) } });
    }
    // Sends the expiry only if it was changed, because the gateway rejects an expiry in the past.
    const body = { name, ...changes, ...(until !== expiry && { expiresAt }) };
    return ask<ApiKey>(paths.ofKey(key), { method: 'PATCH', body });
  };
  return (
    <DecisionDialog
      title={key === undefined ? 'Create a key' : 'Edit the key'}
      verb={key === undefined ? 'Create the key' : 'Save'}
      fields={fieldsOf(key, expiry)}
      isComplete={allowedModels?.length !== 0}
      act={save}
      onDone={(saved: ApiKey | NewApiKey) => 'key' in saved && showNewKey(saved)}
    >
      <ModelChoice names={names} chosen={allowedModels} onChange={setAllowed} />
    </DecisionDialog>
  );
}

function fieldsOf(key: ApiKey | undefined, expiry: string): readonly FormPart[] {
  const amounts = (Object.keys(AMOUNTS) as Amount[]).map((name): FormField => {
    const usd = key?.[name] ?? null;
    return {
      name,
      label: AMOUNTS[name],
      kind: 'amount',
      value: usd === null ? '' : exactUsd(usd).replace(/[$,]/g, ''),
    };
  });
  const counts = (Object.keys(COUNTS) as Count[]).map(
    (name): FormField => ({ name, label: COUNTS[name], kind: 'count', value: String(key?.[name] ?? '') }),
  );
  const access: readonly FormField[] = [
    { name: 'expiresAt', label: 'Expires', kind: 'expiry', value: expiry },
    {
      name: 'allowedAddresses',
      label: 'Allowed addresses',
      hint: 'Put spaces between them, such as 203.0.113.0/24 2001:db8::1. Leave empty for all.',
      placeholder: 'All',
      maxLength: 6_100,
      value: key?.allowedAddresses?.join(' ') ?? '',
    },
  ];
  return [
    {
      name: 'name',
      label: 'Name',
      hint: 'The person or program that uses the key.',
      isRequired: true,
      value: key?.name ?? '',
    },
    { legend: 'Spending limit', isRow: true, fields: amounts },
    { legend: 'Rate limit', isRow: true, fields: counts },
    { legend: 'Access', fields: access },
  ];
}

/** Reads a list separated by spaces or commas; null if the text is empty or absent. */
function listOf(text = ''): readonly string[] | null {
  const list = text.split(/[\s,]+/).filter((each) => each !== '');
  return list.length === 0 ? null : list;
}

/** The largest number of models that the list shows without a search field. */
const FEW = 8;

interface ModelChoiceProps {
  readonly names: readonly string[];
  /** The names of the allowed models; null allows all models, including future ones. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

function ModelChoice({ names: known, chosen, onChange }: ModelChoiceProps) {
  const [words, setWords] = useState('');
  // Includes allowed models that no upstream serves any more, so that the user can remove them.
  const names = [...new Set([...known, ...(chosen ?? [])])];
  const shown = names.filter((name) => name.toLowerCase().includes(words.trim().toLowerCase()));
  const toggle = (name: string) =>
    onChange(chosen?.includes(name) ? chosen.filter((each) => each !== name) : [...(chosen ?? []), name]);
  return (
    <fieldset class="group stack">
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
        <div class="model-choice stack">
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
          {chosen.length === 0 && <p class="quiet small">Choose one model at least.</p>}
        </div>
      )}
    </fieldset>
  );
}

const GRACES = [
  { value: '86400', text: '1 day' },
  { value: '604800', text: '1 week' },
  { value: '2592000', text: '30 days' },
  { value: '3600', text: '1 hour' },
  { value: '0', text: 'Stop it now' },
] as const;

/** Opens a dialog that rotates a key's secret. The old secret works during the grace period, so that programs can switch to the new one. */
export function rotate(paths: KeyPaths, key: ApiKey): void {
  decide({
    title: 'Rotate the key',
    verb: 'Rotate the key',
    text: (
      <p>
        <KeyName apiKey={key} /> gets a new secret. Its limits, spending and usage records stay.
      </p>
    ),
    fields: [
      {
        name: 'graceSeconds',
        label: 'The old secret works for',
        hint: 'A key has one old secret at most. An earlier one stops working now.',
        options: GRACES,
        value: GRACES[0].value,
      },
    ],
    act: ({ graceSeconds }) =>
      ask<NewApiKey>(`${paths.ofKey(key)}/rotate`, { method: 'POST', body: { graceSeconds: Number(graceSeconds) } }),
    onDone: showNewKey,
  });
}

export function revoke(paths: KeyPaths, key: ApiKey): void {
  const { lastUsedAt } = key;
  // The admin API does not report a key's last use to operators, so the text omits it.
  const lastUse =
    lastUsedAt === undefined ? '' : lastUsedAt === null ? 'was never used.' : `was last used ${showAgo(lastUsedAt)}.`;
  decide({
    title: 'Revoke the key?',
    verb: 'Revoke the key',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <>
        <p>
          <KeyName apiKey={key} /> {lastUse}
        </p>
        <p class="quiet">
          The gateway refuses its next call. A revoked key cannot be used again. Its usage records stay.
        </p>
      </>
    ),
    act: () => ask(paths.ofKey(key), { method: 'DELETE' }),
    done: `${key.name} is revoked.`,
  });
}

function showNewKey({ name, key, previousSecretUntil }: NewApiKey): void {
  const title = previousSecretUntil === null ? 'Your new key' : 'Your new secret';
  showSecret({ title, name, noun: 'key', secret: key });
}

/** A key's name and the visible ends of its secret. */
function KeyName({ apiKey: { name, prefix, suffix } }: { readonly apiKey: ApiKey }) {
  return (
    <>
      <strong>{name}</strong>{' '}
      <span class="mono quiet">
        {prefix}…{suffix}
      </span>
    </>
  );
}
