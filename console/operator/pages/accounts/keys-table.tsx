import { shortUsd } from '../../../money';
import { showShortCount } from '../../../numbers';
import { Ago } from '../../../parts/ago';
import { Badge } from '../../../parts/badge';
import { type Column, Table } from '../../../parts/table';
import { mayChange } from '../../session';
import type { ApiKey } from '../../shapes';
import { Amount } from './accounts-page';

interface Props {
  readonly keys: readonly ApiKey[] | undefined;
  readonly onLimits: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

export function KeysTable({ keys, onLimits, onRevoke }: Props) {
  const actions = (key: ApiKey) =>
    key.status === 'revoked' ? (
      <span class="faint small">{key.revokedAt !== null && <Ago at={key.revokedAt} />}</span>
    ) : (
      <>
        <button type="button" class="button slight" onClick={() => onLimits(key)}>
          Limits<span class="unseen"> of {key.name}</span>
        </button>
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
      columns={
        mayChange()
          ? [...COLUMNS, { title: <span class="unseen">Actions</span>, look: 'actions', cell: actions }]
          : COLUMNS
      }
      rows={keys}
      keyOf={({ id }) => id}
      bones={2}
      none="This account has no key."
    />
  );
}

const COLUMNS: readonly Column<ApiKey>[] = [
  {
    title: 'Key',
    cell: ({ name, prefix, suffix }) => (
      <>
        <span class="key-name cut">{name}</span>
        <span class="sub faint small mono">
          {prefix}…{suffix}
        </span>
      </>
    ),
  },
  {
    title: 'Status',
    room: 'from-m',
    cell: ({ status }) => (
      <Badge tone={status === 'active' ? 'good' : 'plain'}>{status === 'active' ? 'Active' : 'Revoked'}</Badge>
    ),
  },
  {
    title: 'Spent of its limit',
    look: 'figure',
    cell: ({ spentUsd, balanceLimit }) => (
      <>
        <Amount usd={spentUsd} />{' '}
        <span class="faint">{balanceLimit === null ? 'no limit' : `of ${shortUsd(balanceLimit)}`}</span>
      </>
    ),
  },
  {
    title: 'Per day and month',
    room: 'from-l',
    look: 'figure small',
    cell: ({ dailyLimit, monthlyLimit }) => (
      <Lines
        lines={[dailyLimit && `${shortUsd(dailyLimit)} a day`, monthlyLimit && `${shortUsd(monthlyLimit)} a month`]}
      />
    ),
  },
  {
    title: 'Rate',
    room: 'from-l',
    look: 'figure small',
    cell: ({ callsPerMinute: calls, tokensPerMinute: tokens }) => (
      <Lines
        lines={[calls && `${showShortCount(calls)} calls/min`, tokens && `${showShortCount(tokens)} tokens/min`]}
      />
    ),
  },
  {
    title: 'Expires',
    room: 'from-l',
    look: 'quiet small',
    cell: ({ expiresAt }) => (expiresAt === null ? 'Never' : <Ago at={expiresAt} />),
  },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
];

function Lines({ lines }: { readonly lines: readonly (string | number | null)[] }) {
  const set = lines.filter((each) => typeof each === 'string');
  if (set.length === 0) return <span class="faint">–</span>;
  return (
    <>
      {set.map((each) => (
        <span class="line" key={each}>
          {each}
        </span>
      ))}
    </>
  );
}
