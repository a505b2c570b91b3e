import { useState } from 'preact/hooks';
import { ask, withQuery } from '../../../api';
import { ActDialog } from '../../../parts/act-dialog';
import { Ago } from '../../../parts/ago';
import { Badge } from '../../../parts/badge';
import { Icon } from '../../../parts/icon';
import { Pager, usePages } from '../../../parts/pager';
import { SecretDialog } from '../../../parts/secret-dialog';
import { Empty, Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { useResource } from '../../../resource';
import type { List } from '../../../shapes';
import { showDate, showWhole } from '../../../times';
import { isOwner, session } from '../../session';
import type { NewToken, Token } from '../../shapes';
import { CreateDialog } from './create-dialog';

type Open =
  | { readonly dialog: 'create' }
  | { readonly dialog: 'secret'; readonly made: NewToken }
  | { readonly dialog: 'revoke'; readonly token: Token };

const FILTER = withQuery('/admin/v1/tokens', { limit: 50 });
const EVERY_MS = 5_000;

export function TokensPage() {
  const pages = usePages(FILTER);
  const path = pages.cursor === undefined ? FILTER : `${FILTER}&cursor=${encodeURIComponent(pages.cursor)}`;
  const tokens = useResource<List<Token>>(path, { everyMs: EVERY_MS });
  const [open, setOpen] = useState<Open>();
  const { data, failure, isLoading } = tokens;
  const nextCursor = data?.nextCursor ?? null;
  const close = () => setOpen(undefined);
  const actions: Column<Token> = {
    title: <span class="unseen">Actions</span>,
    look: 'actions',
    cell: (token) =>
      statusOf(token) === 'active' && (
        <button type="button" class="button slight danger" onClick={() => setOpen({ dialog: 'revoke', token })}>
          Revoke<span class="unseen"> {token.name}</span>
        </button>
      ),
  };
  return (
    <div class="page">
      <header class="page-head">
        <h1>Operator tokens</h1>
        <span class="grow" />
        {isOwner() && (
          <button type="button" class="button primary" onClick={() => setOpen({ dialog: 'create' })}>
            <Icon name="plus" /> Create a token
          </button>
        )}
      </header>
      {!isOwner() && <OwnersOnly />}
      {failure !== undefined && <Failed failure={failure} onRetry={tokens.reload} />}
      <section class="panel" aria-label="Operator tokens">
        {data?.items.length === 0 && !isLoading ? (
          <Empty icon="keys" title="No tokens yet">
            <p class="quiet">
              Create a token for each person and program. The audit log then names who made each change, and you can
              revoke one token without the others.
            </p>
          </Empty>
        ) : (
          <Table
            label="Operator tokens"
            caption="Operator tokens, newest first"
            columns={isOwner() ? [...COLUMNS, actions] : COLUMNS}
            rows={data?.items}
            keyOf={({ id }) => id}
            isStale={isLoading}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      {open?.dialog === 'create' && (
        <CreateDialog
          onCreated={(made) => {
            setOpen({ dialog: 'secret', made });
            tokens.reload();
          }}
          onClose={close}
        />
      )}
      {open?.dialog === 'secret' && (
        <SecretDialog
          title="The new token"
          name={open.made.name}
          noun="token"
          secret={open.made.token}
          onClose={close}
        />
      )}
      {open?.dialog === 'revoke' && (
        <RevokeDialog
          token={open.token}
          onRevoked={() => {
            close();
            tokens.reload();
          }}
          onClose={close}
        />
      )}
    </div>
  );
}

/** Explains why the page has no buttons. */
function OwnersOnly() {
  const state = session.value;
  if (state.is !== 'signed-in') return null;
  return (
    <p class="note">
      You are signed in with the role <strong>{state.session.operator.role}</strong>. Only the role{' '}
      <strong>owner</strong> creates and revokes tokens. <code>ADMIN_TOKEN</code> is an owner.
    </p>
  );
}

type Status = 'active' | 'expired' | 'revoked';

function statusOf({ expiresAt, revokedAt }: Token): Status {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}

const STATUS_NAMES: Readonly<Record<Status, string>> = { active: 'Active', expired: 'Expired', revoked: 'Revoked' };

const COLUMNS: readonly Column<Token>[] = [
  {
    title: 'Name',
    cell: ({ name, suffix }) => (
      <>
        <span class="key-name cut">{name}</span>
        <span class="sub faint small mono">…{suffix}</span>
      </>
    ),
  },
  { title: 'Role', cell: ({ role }) => role },
  {
    title: 'Status',
    cell: (token) => {
      const status = statusOf(token);
      return <Badge tone={status === 'active' ? 'good' : 'plain'}>{STATUS_NAMES[status]}</Badge>;
    },
  },
  {
    title: 'Expires',
    room: 'from-m',
    look: 'quiet small',
    cell: ({ expiresAt: at }) => (at === null ? 'Never' : <Day at={at} />),
  },
  {
    title: 'Last used',
    room: 'from-m',
    look: 'quiet small',
    cell: ({ lastUsedAt: at }) => (at === null ? 'Never' : <Ago at={at} />),
  },
  { title: 'Created', room: 'from-l', look: 'quiet small', cell: ({ createdAt }) => <Day at={createdAt} /> },
];

function Day({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={showWhole(at)}>
      {showDate(at)}
    </time>
  );
}

interface RevokeProps {
  readonly token: Token;
  readonly onRevoked: () => void;
  readonly onClose: () => void;
}

function RevokeDialog({ token, onRevoked, onClose }: RevokeProps) {
  return (
    <ActDialog
      title="Revoke the token?"
      verb="Revoke the token"
      isDestructive
      keep="Keep it"
      done={`${token.name} is revoked.`}
      act={() => ask(`/admin/v1/tokens/${token.id}`, { method: 'DELETE' })}
      onDone={onRevoked}
      onClose={onClose}
    >
      {() => (
        <>
          <p>
            <strong>{token.name}</strong> <span class="mono quiet">…{token.suffix}</span>{' '}
            {token.lastUsedAt === null ? (
              'was never used.'
            ) : (
              <>
                was last used <Ago at={token.lastUsedAt} />.
              </>
            )}
          </p>
          <p class="quiet">
            Every node refuses it from now on, and each session that it opened ends. A revoked token cannot be used
            again, and no other token can have its name.
          </p>
        </>
      )}
    </ActDialog>
  );
}
