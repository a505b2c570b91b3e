import { ask } from '../api';
import { Button } from '../parts/button';
import { decide, showSecret } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Page } from '../parts/page';
import { Pager, usePages } from '../parts/pager';
import { Empty } from '../parts/states';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../parts/table';
import { Badge, Named } from '../parts/values';
import { useResource } from '../resource';
import type { List } from '../shapes';
import { fromLocalInput, showAgo, showDate, toLocalInput } from '../times';
import { roleOf } from './session';
import type { NewToken, Token } from './shapes';

const PATH = '/admin/v1/tokens';
const EVERY_MS = 5_000;

export function TokensPage() {
  const pages = usePages(`${PATH}?limit=50`);
  const tokens = useResource<List<Token>>(pages.path, { everyMs: EVERY_MS });
  const role = roleOf();
  const isOwner = role === 'owner';
  const actions = isOwner && (
    <Button look="primary" onClick={create}>
      <Icon name="plus" /> Create a token
    </Button>
  );
  const whyNone = !isOwner && (
    <p class="note">
      You are signed in with the role <strong>{role}</strong>. Only the role <strong>owner</strong> creates and revokes
      tokens. <code>ADMIN_TOKEN</code> is an owner.
    </p>
  );
  return (
    <Page title="Operator tokens" actions={actions} tools={whyNone} from={tokens}>
      <TablePanel
        title="Operator tokens"
        isWholePage
        caption="Operator tokens, newest first"
        columns={isOwner ? [...COLUMNS, ACTIONS] : COLUMNS}
        list={tokens}
        keyOf={({ id }) => id}
        empty={
          <Empty
            icon="keys"
            title="No tokens yet"
            text="Create a token for each person and program. The audit log then names who made each change, and you can revoke one token without the others."
          />
        }
      />
      <Pager {...pages.pagerOf(tokens.data)} />
    </Page>
  );
}

function statusOf({ expiresAt, revokedAt }: Token): 'Active' | 'Expired' | 'Revoked' {
  if (revokedAt !== null) return 'Revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'Expired' : 'Active';
}

const COLUMNS: readonly Column<Token>[] = [
  { title: 'Name', cell: ({ name, suffix }) => <Named name={name} sub={`…${suffix}`} /> },
  { title: 'Role', cell: ({ role }) => role },
  {
    title: 'Status',
    cell: (token) => <Badge tone={statusOf(token) === 'Active' ? 'good' : 'plain'}>{statusOf(token)}</Badge>,
  },
  timeColumn('Expires', ({ expiresAt }) => expiresAt, { room: 'from-m', as: showDate, none: 'Never' }),
  timeColumn('Last used', ({ lastUsedAt }) => lastUsedAt, { room: 'from-m', none: 'Never' }),
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-l', as: showDate }),
];

const ACTIONS = actionsColumn<Token>(
  (token) =>
    statusOf(token) === 'Active' && (
      <Button look="slight danger" of={token.name} onClick={() => revoke(token)}>
        Revoke
      </Button>
    ),
);

/** What each role allows, as in core/operators/roles.ts. Each role includes the roles before it. */
const ROLES = [
  { value: 'metrics', text: 'metrics: reads metrics' },
  { value: 'read', text: 'read: reads everything but secrets' },
  { value: 'write', text: 'write: changes everything but tokens' },
  { value: 'owner', text: 'owner: creates and revokes tokens' },
] as const;

const USUAL_MS = 90 * 86_400_000;

function create(): void {
  decide({
    title: 'Create a token',
    verb: 'Create the token',
    fields: [
      {
        name: 'name',
        label: 'Name',
        hint: 'The person or program that uses the token. The audit log shows it. A name is never used twice.',
        isRequired: true,
      },
      {
        name: 'role',
        label: 'Role',
        hint: 'Each role may also do what the roles above it may.',
        options: ROLES,
        value: 'read',
      },
      {
        name: 'expiresAt',
        label: 'Expires',
        kind: 'expiry',
        value: toLocalInput(new Date(Date.now() + USUAL_MS).toISOString()),
      },
    ],
    act: ({ expiresAt = '', ...body }) =>
      ask<NewToken>(PATH, { method: 'POST', body: { ...body, expiresAt: fromLocalInput(expiresAt) ?? null } }),
    onDone: ({ name, token }) => showSecret({ title: 'The new token', name, noun: 'token', secret: token }),
  });
}

function revoke({ id, name, suffix, lastUsedAt }: Token): void {
  decide({
    title: 'Revoke the token?',
    verb: 'Revoke the token',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <>
        <p>
          <strong>{name}</strong> <span class="mono quiet">…{suffix}</span>{' '}
          {lastUsedAt === null ? 'was never used.' : `was last used ${showAgo(lastUsedAt)}.`}
        </p>
        <p class="quiet">
          Every node refuses it from now on, and each session that it opened ends. A revoked token cannot be used again,
          and no other token can have its name.
        </p>
      </>
    ),
    act: () => ask(`${PATH}/${id}`, { method: 'DELETE' }),
    done: `${name} is revoked.`,
  });
}
