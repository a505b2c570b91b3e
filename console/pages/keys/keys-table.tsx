import type { ComponentChildren } from 'preact';
import type { WithAccess } from '../../access';
import { shortUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Button } from '../../parts/button';
import { Spent } from '../../parts/spent';
import { actionsColumn, type Column, Table, timeColumn } from '../../parts/table';
import { Amount, Lines, Named, When } from '../../parts/values';
import type { Resource } from '../../resource';
import type { ApiKey, List } from '../../shapes';
import { showAgo, showDate, showMoment } from '../../times';
import { type Crew, memberOptions, teamOptions, textOf, useCrew } from '../team/crew';
import { openKeyDialog, revoke, rotate } from './key-dialogs';

interface Props extends WithAccess {
  readonly list: Resource<List<ApiKey>>;
  /** Returns the link to the key's usage records. Absent if the key's name is no link. */
  readonly hrefOf?: (key: ApiKey) => string;
  readonly isLastUseKnown?: boolean;
  readonly none?: string;
  readonly empty?: ComponentChildren;
}

export function KeysTable({ list, access, hrefOf, isLastUseKnown = false, none, empty }: Props) {
  const crew = useCrew(access);
  const areOwned = list.data?.items.some(({ teamId, memberId }) => teamId !== null || memberId !== null) === true;
  const name: Column<ApiKey> = {
    title: 'Name',
    cell: (key) => (
      <Named name={key.name} href={hrefOf?.(key)} title="Show its usage records" sub={`${key.prefix}…${key.suffix}`} />
    ),
  };
  const actions = actionsColumn<ApiKey>((key) => {
    if (key.status === 'revoked')
      return <span class="faint small">Revoked{key.revokedAt !== null && ` ${showAgo(key.revokedAt)}`}</span>;
    if (access.role === 'viewer') return null;
    return (
      <>
        <Button look="slight" of={key.name} onClick={() => openKeyDialog(access, key)}>
          Edit
        </Button>
        {!isExpired(key) && (
          <Button look="slight" of={key.name} onClick={() => rotate(access, key)}>
            Rotate
          </Button>
        )}
        <Button look="slight danger" of={key.name} onClick={() => revoke(access, key)}>
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
      columns={[
        name,
        ...(areOwned ? [ownersOf(crew)] : []),
        ...COLUMNS,
        ...(isLastUseKnown ? [LAST_USED] : []),
        actions,
      ]}
      list={list}
      keyOf={({ id }) => id}
      bones={5}
      none={none}
      empty={empty}
    />
  );
}

/** The team of a key, and its member in a line below. */
function ownersOf(crew: Crew): Column<ApiKey> {
  return {
    title: 'Team, member',
    room: 'from-m',
    look: 'small',
    cell: ({ teamId, memberId }) => (
      <Lines of={[teamId && textOf(teamOptions(crew), teamId), memberId && textOf(memberOptions(crew), memberId)]} />
    ),
  };
}

const LAST_USED = timeColumn<ApiKey>('Last used', ({ lastUsedAt }) => lastUsedAt ?? null, {
  room: 'from-m',
  none: 'Never',
});

const COLUMNS: readonly Column<ApiKey>[] = [
  {
    title: 'Spent of limit',
    cell: ({ balanceLimit: limitUsd, spentUsd, heldUsd }) => <Spent {...{ limitUsd, spentUsd, heldUsd }} />,
  },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
  {
    title: 'Per day and month',
    room: 'from-l',
    look: 'figure small',
    cell: ({ dailyLimit: daily, monthlyLimit: monthly }) => (
      <Lines of={[daily && `${shortUsd(daily)} per day`, monthly && `${shortUsd(monthly)} per month`]} />
    ),
  },
  {
    title: 'Rate',
    room: 'from-l',
    look: 'figure small',
    cell: ({ callsPerMinute: calls, tokensPerMinute: tokens }) => (
      <Lines of={[calls && `${showShortCount(calls)} calls/min`, tokens && `${showShortCount(tokens)} tokens/min`]} />
    ),
  },
  { title: 'Models', room: 'from-m', look: 'small', cell: ({ allowedModels }) => <Allowed models={allowedModels} /> },
  { title: 'Expires', room: 'from-l', look: 'quiet small', cell: (key) => <Expiry apiKey={key} /> },
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-l', as: showDate }),
];

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
