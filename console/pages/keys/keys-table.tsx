import type { ComponentChildren } from 'preact';
import { addUsd, shareOf, shortUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Button } from '../../parts/button';
import { actionsColumn, type Column, Table, timeColumn } from '../../parts/table';
import { Amount, Named, NONE, When } from '../../parts/values';
import type { Resource } from '../../resource';
import type { ApiKey, List } from '../../shapes';
import { showAgo, showDate, showMoment } from '../../times';
import { type KeyPaths, openKeyDialog, revoke, rotate } from './key-dialogs';

interface Props {
  readonly list: Resource<List<ApiKey>>;
  readonly paths: KeyPaths;
  /** Returns the link to the key's usage records. Absent if the key's name is no link. */
  readonly hrefOf?: (key: ApiKey) => string;
  readonly isLastUseKnown?: boolean;
  /** Whether the user's role may change keys. */
  readonly mayChange: boolean;
  readonly none?: string;
  readonly empty?: ComponentChildren;
}

export function KeysTable({ list, paths, hrefOf, isLastUseKnown = false, mayChange, none, empty }: Props) {
  const name: Column<ApiKey> = {
    title: 'Name',
    cell: (key) => (
      <Named name={key.name} href={hrefOf?.(key)} title="Show its usage records" sub={`${key.prefix}…${key.suffix}`} />
    ),
  };
  const actions = actionsColumn<ApiKey>((key) => {
    if (key.status === 'revoked')
      return <span class="faint small">Revoked{key.revokedAt !== null && ` ${showAgo(key.revokedAt)}`}</span>;
    if (!mayChange) return null;
    return (
      <>
        <Button look="slight" of={key.name} onClick={() => openKeyDialog(paths, key)}>
          Edit
        </Button>
        {!isExpired(key) && (
          <Button look="slight" of={key.name} onClick={() => rotate(paths, key)}>
            Rotate
          </Button>
        )}
        <Button look="slight danger" of={key.name} onClick={() => revoke(paths, key)}>
          Revoke
        </Button>
      </>
    );
  });
  return (
    <Table
      label="API keys"
      caption="API keys, newest first"
      look="keys"
      columns={[name, ...COLUMNS, ...(isLastUseKnown ? [LAST_USED] : []), actions]}
      list={list}
      keyOf={({ id }) => id}
      bones={5}
      none={none}
      empty={empty}
    />
  );
}

const LAST_USED = timeColumn<ApiKey>('Last used', ({ lastUsedAt }) => lastUsedAt ?? null, {
  room: 'from-m',
  none: 'Never',
});

const COLUMNS: readonly Column<ApiKey>[] = [
  { title: 'Spent of limit', cell: (key) => <Spent apiKey={key} /> },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
  {
    title: 'Per day and month',
    room: 'from-l',
    look: 'figure small',
    cell: ({ dailyLimit: daily, monthlyLimit: monthly }) => (
      <Limits of={[daily && `${shortUsd(daily)} per day`, monthly && `${shortUsd(monthly)} per month`]} />
    ),
  },
  {
    title: 'Rate',
    room: 'from-l',
    look: 'figure small',
    cell: ({ callsPerMinute: calls, tokensPerMinute: tokens }) => (
      <Limits of={[calls && `${showShortCount(calls)} calls/min`, tokens && `${showShortCount(tokens)} tokens/min`]} />
    ),
  },
  { title: 'Models', room: 'from-m', look: 'small', cell: ({ allowedModels }) => <Allowed models={allowedModels} /> },
  { title: 'Expires', room: 'from-l', look: 'quiet small', cell: (key) => <Expiry apiKey={key} /> },
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-l', as: showDate }),
];

/** The spent amount of a key. A lighter color shows held money, because running calls may spend it soon. */
function Spent({ apiKey }: { readonly apiKey: ApiKey }) {
  const { balanceLimit, spentUsd, heldUsd } = apiKey;
  if (spentUsd === null || heldUsd === null) return NONE;
  if (balanceLimit === null) {
    return (
      <span class="figure">
        <Amount usd={spentUsd} /> <span class="faint small">no limit</span>
      </span>
    );
  }
  const spent = shareOf(spentUsd, balanceLimit);
  const taken = shareOf(addUsd([spentUsd, heldUsd]), balanceLimit);
  return (
    <div class="spent">
      <span class="figure">
        <Amount usd={spentUsd} /> <span class="faint">of {shortUsd(balanceLimit)}</span>
      </span>
      <span class={taken >= 0.9 ? 'meter is-full' : 'meter'} aria-hidden="true">
        <span class="meter-held" style={{ width: `${taken * 100}%` }} />
        <span class="meter-spent" style={{ width: `${spent * 100}%` }} />
      </span>
    </div>
  );
}

/** The limits that a key has, one in each line. */
function Limits({ of }: { readonly of: readonly (string | number | null)[] }) {
  const limits = of.filter((each) => each !== null);
  if (limits.length === 0) return NONE;
  return (
    <>
      {limits.map((each) => (
        <span key={each} class="line">
          {each}
        </span>
      ))}
    </>
  );
}

function isExpired({ expiresAt }: ApiKey): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}

function Expiry({ apiKey }: { readonly apiKey: ApiKey }) {
  const { expiresAt, allowedAddresses, previousSecretUntil } = apiKey;
  const hasOldSecret = previousSecretUntil !== null && Date.parse(previousSecretUntil) > Date.now();
  return (
    <>
      <span class="line">
        <When at={expiresAt} as={(at) => (isExpired(apiKey) ? 'Expired' : showDate(at))} none="Never" />
      </span>
      {allowedAddresses !== null && (
        <span class="line faint" title={allowedAddresses.join(', ')}>
          from {plural(allowedAddresses.length, 'range')}
        </span>
      )}
      {hasOldSecret && (
        <span class="line faint">
          old secret until <time dateTime={previousSecretUntil}>{showMoment(previousSecretUntil)}</time>
        </span>
      )}
    </>
  );
}

function Allowed({ models }: { readonly models: readonly string[] | null }) {
  if (models === null) return <span class="faint">All</span>;
  return models.length === 1 ? (
    <span class="mono cut model-name">{models[0]}</span>
  ) : (
    <span title={models.join(', ')}>{plural(models.length, 'model')}</span>
  );
}
