import { useState } from 'preact/hooks';
import { type Access, mayManage, type WithAccess } from '../../access';
import { ask } from '../../api';
import { plainUsd } from '../../money';
import { Checks } from '../../parts/checks';
import { DecisionDialog, decide, showDialog, showSecret } from '../../parts/dialog';
import type { FormField, FormPart, Values } from '../../parts/field';
import { Segmented } from '../../parts/toolbar';
import { useResource } from '../../resource';
import type { ApiKey, Catalog, NewApiKey } from '../../shapes';
import { fromLocalInput, showAgo, toLocalInput } from '../../times';
import { type Crew, memberOptions, teamOptions, useCrew } from '../team/crew';
import { policyFields, readPolicy, wordsOf } from '../team/policy';

const AMOUNTS = { balanceLimit: 'Total', dailyLimit: 'Per day', monthlyLimit: 'Per month' } as const;
const COUNTS = { callsPerMinute: 'Calls per minute', tokensPerMinute: 'Tokens per minute' } as const;
type Amount = keyof typeof AMOUNTS;
type Count = keyof typeof COUNTS;

/** An answer that lists models: the customer's catalog, or the operator's list of upstreams. */
type ModelSource = Partial<Pick<Catalog, 'models'>> & {
  readonly items?: readonly { readonly models: readonly { readonly name: string }[] }[];
};

export function openKeyDialog(access: Access, key?: ApiKey): void {
  showDialog(<KeyDialog access={access} apiKey={key} />);
}

/** A dialog that creates or edits a key. An empty field means no limit. */
function KeyDialog({ access, apiKey: key }: WithAccess & { readonly apiKey: ApiKey | undefined }) {
  const { data } = useResource<ModelSource>(access.models);
  const owners = ownerFields(access, useCrew(access), key);
  const names = (data?.models ?? data?.items?.flatMap(({ models }) => models) ?? []).map(({ name }) => name);
  const [allowedModels, setAllowed] = useState<readonly string[] | null>(key?.allowedModels ?? null);
  const expiry = key === undefined || key.expiresAt === null ? '' : toLocalInput(key.expiresAt);

  const policy = mayManage(access) ? policyFields(key) : [];
  const save = async ({ name, expiresAt: until = '', allowedAddresses, ...texts }: Values) => {
    const owned = owners.map((field) => [field.name, texts[field.name] ?? null]);
    const numbers = Object.keys(COUNTS).map((count) => [count, count in texts ? Number(texts[count]) : null]);
    const changes = {
      ...Object.fromEntries(Object.keys(AMOUNTS).map((amount) => [amount, texts[amount] ?? null])),
      ...Object.fromEntries(numbers),
      ...Object.fromEntries(owned),
      allowedModels,
      allowedAddresses: wordsOf(allowedAddresses),
      ...(policy.length > 0 && readPolicy(texts)),
    };
    const expiresAt = fromLocalInput(until) ?? null;
    if (key === undefined) {
      const given = Object.entries({ ...changes, expiresAt }).filter(([, value]) => value !== null);
      return ask<NewApiKey>(access.list('keys'), { method: 'POST', body: { name, ...Object.fromEntries(given) } });
    }
    // Sends the expiry only if it was changed, because the gateway rejects an expiry in the past.
    const body = { name, ...changes, ...(until !== expiry && { expiresAt }) };
    return ask<ApiKey>(access.one('keys', key.id), { method: 'PATCH', body });
  };
  return (
    <DecisionDialog
      title={key === undefined ? 'Create a key' : 'Edit the key'}
      verb={key === undefined ? 'Create the key' : 'Save'}
      fields={[...fieldsOf(key, expiry, owners), ...policy]}
      isComplete={allowedModels?.length !== 0}
      act={save}
      onDone={(saved: ApiKey | NewApiKey) => 'key' in saved && showNewKey(saved)}
    >
      <ModelChoice names={names} chosen={allowedModels} onChange={setAllowed} />
    </DecisionDialog>
  );
}

/** Returns the fields for the team and the member of a key. A member chooses one of its own teams, and only for a new key. */
function ownerFields(access: Access, crew: Crew, key: ApiKey | undefined): readonly FormField[] {
  const isManager = mayManage(access);
  if (!isManager && key !== undefined) return [];
  const none = { value: '', text: 'None' };
  const teams = teamOptions(crew);
  const team = { name: 'teamId', label: 'Team', value: key?.teamId ?? '' };
  if (!isManager) return teams.length === 0 ? [] : [{ ...team, value: teams[0]?.value ?? '', options: teams }];
  return [
    { ...team, options: [none, ...teams] },
    { name: 'memberId', label: 'Member', value: key?.memberId ?? '', options: [none, ...memberOptions(crew)] },
  ];
}

function fieldsOf(key: ApiKey | undefined, expiry: string, owners: readonly FormField[]): readonly FormPart[] {
  const amounts = (Object.keys(AMOUNTS) as Amount[]).map((name): FormField => {
    const usd = key?.[name] ?? null;
    return {
      name,
      label: AMOUNTS[name],
      kind: 'amount',
      value: usd === null ? '' : plainUsd(usd),
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
    ...(owners.length === 0 ? [] : [{ legend: 'Belongs to', isRow: true, fields: owners }]),
    { legend: 'Spending limit', isRow: true, fields: amounts },
    { legend: 'Rate limit', isRow: true, fields: counts },
    { legend: 'Access', fields: access },
  ];
}

interface ModelChoiceProps {
  readonly names: readonly string[];
  /** The names of the allowed models; null allows all models, including future ones. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

function ModelChoice({ names: known, chosen, onChange }: ModelChoiceProps) {
  // Includes allowed models that no upstream serves any more, so that the user can remove them.
  const names = [...new Set([...known, ...(chosen ?? [])])];
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
        <>
          <Checks
            search="Search models"
            look="mono"
            options={names.map((name) => ({ value: name, text: name }))}
            chosen={chosen}
            onChange={onChange}
          />
          {chosen.length === 0 && <p class="quiet small">Choose one model at least.</p>}
        </>
      )}
    </fieldset>
  );
}

/** How long an old secret works beside a new one. */
export const GRACES = [
  { value: '86400', text: '1 day' },
  { value: '604800', text: '1 week' },
  { value: '2592000', text: '30 days' },
  { value: '3600', text: '1 hour' },
  { value: '0', text: 'Stop it now' },
] as const;

/** Opens a dialog that rotates a key's secret. The old secret works during the grace period, so that programs can switch to the new one. */
export function rotate(access: Access, key: ApiKey): void {
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
      ask<NewApiKey>(`${access.one('keys', key.id)}/rotate`, {
        method: 'POST',
        body: { graceSeconds: Number(graceSeconds) },
      }),
    onDone: showNewKey,
  });
}

export function revoke(access: Access, key: ApiKey): void {
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
    act: () => ask(access.one('keys', key.id), { method: 'DELETE' }),
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
