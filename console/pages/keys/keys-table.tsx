import { addUsd, exactUsd, shareOf, shortUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Ago } from '../../parts/ago';
import { type Column, Table } from '../../parts/table';
import { hrefOf } from '../../router';
import type { ApiKey } from '../../shapes';
import { showAgo, showDate, showWhole } from '../../times';

interface Props {
  readonly keys: readonly ApiKey[] | undefined;
  readonly isStale: boolean;
  readonly onEdit: (key: ApiKey) => void;
  readonly onRotate: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

export function KeysTable({ keys, isStale, onEdit, onRotate, onRevoke }: Props) {
  const actions = (key: ApiKey) =>
    key.status === 'revoked' ? (
      <span class="faint small">Revoked{key.revokedAt !== null && ` ${showAgo(key.revokedAt)}`}</span>
    ) : (
      <>
        <button type="button" class="button slight" onClick={() => onEdit(key)}>
          Edit<span class="unseen"> {key.name}</span>
        </button>
        {!isExpired(key) && (
          <button type="button" class="button slight" onClick={() => onRotate(key)}>
            Rotate<span class="unseen"> {key.name}</span>
          </button>
        )}
        <button type="button" class="button slight danger" onClick={() => onRevoke(key)}>
          Revoke<span class="unseen"> {key.name}</span>
        </button>
      </>
    );
  return (
    <Table
      label="API keys"
      caption="API keys, newest first"
      look="keys"
      columns={[...COLUMNS, { title: <span class="unseen">Actions</span>, look: 'actions', cell: actions }]}
      rows={keys}
      keyOf={({ id }) => id}
      bones={5}
      isStale={isStale}
    />
  );
}

const COLUMNS: readonly Column<ApiKey>[] = [
  {
    title: 'Name',
    cell: ({ id, name, prefix, suffix }) => (
      <>
        <a class="plain-link key-name cut" href={hrefOf(`/usage?key=${id}`)} title="Its usage records">
          {name}
        </a>
        <span class="sub faint small mono">
          {prefix}…{suffix}
        </span>
      </>
    ),
  },
  { title: 'Spent of its limit', cell: (key) => <Spent apiKey={key} /> },
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
    title: 'Last used',
    room: 'from-m',
    look: 'quiet small',
    cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'Never' : <Ago at={lastUsedAt} />),
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

/** What is held may be spent in the next moment: it counts, in a lighter colour. */
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
      {daily !== null && <span class="line">{shortUsd(daily)} a day</span>}
      {monthly !== null && <span class="line">{shortUsd(monthly)} a month</span>}
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
  const { expiresAt, allowedAddresses } = apiKey;
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
