import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { LIMIT_NAMES, type LimitName, limitsOf, limitText, RATE_LIMITS, SPENDING_LIMITS } from '../../key-limits';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Failed } from '../../parts/states';
import { toFailure } from '../../resource';
import type { ApiKey, NewApiKey } from '../../shapes';
import { fromLocalInput, toLocalInput } from '../../times';
import { ModelChoice } from './model-choice';

interface CreateProps {
  readonly apiKey?: undefined;
  readonly onMade: (made: NewApiKey) => void;
  readonly onClose: () => void;
}

interface EditProps {
  readonly apiKey: ApiKey;
  readonly onChanged: () => void;
  readonly onClose: () => void;
}

type Texts = Readonly<Record<LimitName, string>>;

/** Makes a key, or changes one. An empty limit is none. */
export function KeyDialog(props: CreateProps | EditProps) {
  const { apiKey, onClose } = props;
  const [name, setName] = useState(apiKey?.name ?? '');
  const [texts, setTexts] = useState<Texts>(() => textsOf(apiKey));
  const [models, setModels] = useState<readonly string[] | null>(apiKey?.allowedModels ?? null);
  const [expiry, setExpiry] = useState(() => expiryOf(apiKey));
  const [addresses, setAddresses] = useState(() => apiKey?.allowedAddresses?.join(' ') ?? '');
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);

  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      if (props.apiKey === undefined) {
        const access = givenOnly({ expiresAt: timeOf(expiry), allowedAddresses: listOf(addresses) });
        const body = {
          name,
          ...givenOnly(limitsOf((limit) => texts[limit])),
          ...(models !== null && { allowedModels: models }),
          ...access,
        };
        props.onMade(await ask<NewApiKey>('keys', { method: 'POST', body }));
      } else {
        const access = { allowedAddresses: listOf(addresses) };
        const isMoved = expiry !== expiryOf(props.apiKey);
        const limits = {
          ...limitsOf((limit) => texts[limit]),
          ...access,
          ...(isMoved && { expiresAt: timeOf(expiry) }),
        };
        const body = { name, ...limits, allowedModels: models };
        await ask(`keys/${props.apiKey.id}`, { method: 'PATCH', body });
        props.onChanged();
      }
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
    }
  };
  const wrongField = failure?.more.param?.replace(/\[.*$/, '');
  const errorOf = (field: string) => (wrongField === field ? failure?.message : undefined);
  const isOfField = ['name', 'expiresAt', 'allowedAddresses', ...Object.keys(texts)].includes(wrongField ?? '');
  const inputOf = (field: keyof Texts) => ({
    value: texts[field],
    onInput: (event: { currentTarget: HTMLInputElement }) =>
      setTexts({ ...texts, [field]: event.currentTarget.value.trim() }),
  });

  return (
    <Dialog title={apiKey === undefined ? 'Create a key' : 'Edit the key'} onClose={onClose}>
      <form class="form" onSubmit={save}>
        <Field label="Name" hint="Who or what calls with it." error={errorOf('name')}>
          {(control) => (
            <input
              {...control}
              type="text"
              required
              maxLength={200}
              autocomplete="off"
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset class="group">
          <legend>Spending limit</legend>
          <div class="fields">
            {SPENDING_LIMITS.map((limit) => (
              <Field key={limit.name} label={limit.label} sign="$" error={errorOf(limit.name)}>
                {(control) => (
                  <input
                    {...control}
                    {...inputOf(limit.name)}
                    type="text"
                    inputMode="decimal"
                    pattern="\d+(\.\d{1,8})?"
                    title="Dollars, such as 25 or 0.5"
                    placeholder="None"
                    autocomplete="off"
                  />
                )}
              </Field>
            ))}
          </div>
        </fieldset>
        <fieldset class="group">
          <legend>Rate limit</legend>
          <div class="fields">
            {RATE_LIMITS.map((rate) => (
              <Field key={rate.name} label={rate.label} error={errorOf(rate.name)}>
                {(control) => (
                  <input
                    {...control}
                    {...inputOf(rate.name)}
                    type="text"
                    inputMode="numeric"
                    pattern="[1-9]\d{0,8}"
                    title="A whole number from 1"
                    placeholder="None"
                    autocomplete="off"
                  />
                )}
              </Field>
            ))}
          </div>
        </fieldset>
        <fieldset class="group">
          <legend>Access</legend>
          <div class="fields">
            <Field label="Expires" hint="Empty: never." error={errorOf('expiresAt')}>
              {(control) => (
                <input
                  {...control}
                  type="datetime-local"
                  value={expiry}
                  onInput={(event) => setExpiry(event.currentTarget.value)}
                />
              )}
            </Field>
            <Field
              label="Allowed addresses"
              hint="With spaces between, such as 203.0.113.0/24. Empty: all."
              error={errorOf('allowedAddresses')}
            >
              {(control) => (
                <input
                  {...control}
                  type="text"
                  placeholder="All"
                  autocomplete="off"
                  value={addresses}
                  onInput={(event) => setAddresses(event.currentTarget.value)}
                />
              )}
            </Field>
          </div>
        </fieldset>
        <ModelChoice chosen={models} onChange={setModels} />
        {failure !== undefined && !isOfField && <Failed failure={failure} />}
        <div class="dialog-feet">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={isBusy || models?.length === 0}>
            {apiKey === undefined ? 'Create the key' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function textsOf(key: ApiKey | undefined): Texts {
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitText(key?.[name])])) as Texts;
}

function givenOnly(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function expiryOf(key: ApiKey | undefined): string {
  return key === undefined || key.expiresAt === null ? '' : toLocalInput(key.expiresAt);
}

function timeOf(field: string): string | null {
  return fromLocalInput(field) ?? null;
}

/** Spaces or commas stand between. */
function listOf(text: string): readonly string[] | null {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  return words.length === 0 ? null : words;
}
