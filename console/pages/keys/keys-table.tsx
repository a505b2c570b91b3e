import { addUsd, exactUsd, shareOf, shortUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Ago } from '../../parts/ago';
import { type Column, Table } from '../../parts/table';
import type { ApiKey } from '../../shapes';
import { showAgo, showDate, showMoment, showWhole } from '../../times';
import type { KeyTask } from './key-dialogs';

interface Props {
  readonly keys: readonly ApiKey[] | undefined;
  readonly isStale?: boolean;
  /** The link of the name. */
  readonly nameHref?: (key: ApiKey) => string;
  readonly isLastUseKnown?: boolean;
  /** undefined for an operator whose role changes nothing. */
  readonly onTask: ((task: KeyTask) => void) | undefined;
  readonly none?: string;
}

export function KeysTable({ keys, isStale = false, nameHref, isLastUseKnown = false, onTask, none }: Props) {
  const name: Column<ApiKey> = {
    title: 'Name',
    cell: (key) => (
      <>
        {nameHref === undefined ? (
          <span class="key-name cut">{key.name}</span>
        ) : (
          <a class="plain-link key-name cut" href={nameHref(key)} title="Show its usage records">
            {key.name}
          </a>
        )}
        <span class="sub faint small mono">
          {key.prefix}…{key.suffix}
        </span>
      </>
    ),
  };
  const actions: Column<ApiKey> = {
    title: <span class="unseen">Actions</span>,
    look: 'actions',
    cell: (key) => {
      if (key.status === 'revoked')
        return <span class="faint small">Revoked{key.revokedAt !== null && ` ${showAgo(key.revokedAt)}`}</span>;
      if (onTask === undefined) return null;
      const button = (task: 'edit' | 'rotate' | 'revoke', text: string) => (
        <button
          type="button"
          class={task === 'revoke' ? 'button slight danger' : 'button slight'}
          onClick={() => onTask({ task, key })}
        >
          {text}
          <span class="unseen"> {key.name}</span>
        </button>
      );
      return (
        <>
          {button('edit', 'Edit')}
          {!isExpired(key) && button('rotate', 'Rotate')}
          {button('revoke', 'Revoke')}
        </>
      );
    },
  };
  return (
    <Table
      label="API keys"
      caption="API keys, newest first"
      look="keys"
      columns={[name, ...COLUMNS, ...(isLastUseKnown ? [LAST_USED] : []), actions]}
      rows={keys}
      keyOf={({ id }) => id}
      bones={5}
      isStale={isStale}
      none={none}
    />
  );
}

const LAST_USED: Column<ApiKey> = {
  title: 'Last used',
  room: 'from-m',
  look: 'quiet small',
  cell: ({ lastUsedAt }) => (typeof lastUsedAt === 'string' ? <Ago at={lastUsedAt} /> : 'Never'),
};

const COLUMNS: readonly Column<ApiKey>[] = [
  { title: 'Spent of limit', cell: (key) => <Spent apiKey={key} /> },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => amount(heldUsd) },
  {
    title: 'Per day and month',
    room: 'from-l',
    look: 'figure small',
    cell: ({ dailyLimit, monthlyLimit }) => <Limits daily={dailyLimit} monthly={monthlyLimit} />,
  },
  {
    title: 'Rate',
    room: 'from-l',
    look: 'figure small',
    cell: ({ callsPerMinute, tokensPerMinute }) => <Rate calls={callsPerMinute} tokens={tokensPerMinute} />,
  },
  {
    title: 'Models',
    room: 'from-m',
    look: 'small',
    cell: ({ allowedModels }) => <Allowed models={allowedModels} />,
  },
  {
    title: 'Expires',
    room: 'from-l',
    look: 'quiet small',
    cell: (key) => <Expiry apiKey={key} />,
  },
  {
    title: 'Created',
    room: 'from-l',
    look: 'quiet small',
    cell: ({ createdAt }) => (
      <time dateTime={createdAt} title={showWhole(createdAt)}>
        {showDate(createdAt)}
      </time>
    ),
  },
];

function amount(usd: string | null) {
  return usd === null ? '–' : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>;
}

/** The spent amount of a key. Held money is included in a lighter colour, because calls may spend it in a moment. */
function Spent({ apiKey }: { readonly apiKey: ApiKey }) {
  const { balanceLimit, spentUsd, heldUsd } = apiKey;
  if (spentUsd === null || heldUsd === null) return <span class="faint">–</span>;
  if (balanceLimit === null) {
    return (
      <span class="figure">
        {amount(spentUsd)} <span class="faint small">no limit</span>
      </span>
    );
  }
  const spent = shareOf(spentUsd, balanceLimit);
  const taken = shareOf(addUsd([spentUsd, heldUsd]), balanceLimit);
  return (
    <div class="spent">
      <span class="figure">
        {amount(spentUsd)} <span class="faint">of {shortUsd(balanceLimit)}</span>
      </span>
      <span class={taken >= 0.9 ? 'meter is-full' : 'meter'} aria-hidden="true">
        <span class="meter-held" style={{ width: `${taken * 100}%` }} />
        <span class="meter-spent" style={{ width: `${spent * 100}%` }} />
      </span>
    </div>
  );
}

function Limits({ daily, monthly }: { readonly daily: string | null; readonly monthly: string | null }) {
  if (daily === null && monthly === null) return <span class="faint">–</span>;
  return (
    <>
      {daily !== null && <span class="line">{shortUsd(daily)} per day</span>}
      {monthly !== null && <span class="line">{shortUsd(monthly)} per month</span>}
    </>
  );
}

function Rate({ calls, tokens }: { readonly calls: number | null; readonly tokens: number | null }) {
  if (calls === null && tokens === null) return <span class="faint">–</span>;
  return (
    <>
      {calls !== null && <span class="line">{showShortCount(calls)} calls/min</span>}
      {tokens !== null && <span class="line">{showShortCount(tokens)} tokens/min</span>}
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
        {expiresAt === null ? (
          'Never'
        ) : (
          <time dateTime={expiresAt} title={showWhole(expiresAt)}>
            {isExpired(apiKey) ? 'Expired' : showDate(expiresAt)}
          </time>
        )}
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
