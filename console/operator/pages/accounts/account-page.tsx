import { useState } from 'preact/hooks';
import { exactUsd, shortUsd } from '../../../money';
import { KeyDialogs, type KeyTask } from '../../../pages/keys/key-dialogs';
import { KeysTable } from '../../../pages/keys/keys-table';
import { Ago } from '../../../parts/ago';
import { CopyButton } from '../../../parts/copy-button';
import { Icon } from '../../../parts/icon';
import { Bone, Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { useResource } from '../../../resource';
import { hrefOf } from '../../../router';
import type { ApiKey, List } from '../../../shapes';
import { mayChange } from '../../session';
import type { Account, Upstream, User } from '../../shapes';
import { BookDialog, FreezeDialog } from './account-dialogs';
import { AccountStatus } from './accounts-page';
import { UsagePanel } from './usage-panel';

const EVERY_MS = 5_000;

export function AccountPage({ id }: { readonly id: string }) {
  const path = `/admin/v1/accounts/${encodeURIComponent(id)}`;
  const account = useResource<Account>(path, { everyMs: EVERY_MS });
  const keys = useResource<List<ApiKey>>(`${path}/keys?limit=200`, { everyMs: EVERY_MS });
  const users = useResource<List<User>>(`${path}/users`);
  const [open, setOpen] = useState<'credits' | 'debits' | 'freeze'>();
  const [task, setTask] = useState<KeyTask>();
  const isChoosing = task?.task === 'create' || task?.task === 'edit';
  const upstreams = useResource<List<Upstream>>(isChoosing ? '/admin/v1/upstreams' : undefined);
  const models = upstreams.data?.items.flatMap((each) => each.models.map(({ name }) => name)) ?? [];
  const { data, failure } = account;
  const close = () => setOpen(undefined);
  const closeAndReload = () => {
    close();
    account.reload();
    keys.reload();
  };
  return (
    <div class="page">
      <p class="back">
        <a href={hrefOf('/accounts')}>
          <Icon name="left" /> Accounts
        </a>
      </p>
      <header class="page-head">
        <h1>{data?.name ?? (failure === undefined ? <Bone width="10ch" /> : 'Account')}</h1>
        {data !== undefined && <AccountStatus status={data.status} />}
        <span class="grow" />
        {data !== undefined && mayChange() && (
          <>
            <button type="button" class="button" onClick={() => setOpen('credits')}>
              Credit
            </button>
            <button type="button" class="button" onClick={() => setOpen('debits')}>
              Debit
            </button>
            <button
              type="button"
              class={data.status === 'active' ? 'button danger' : 'button'}
              onClick={() => setOpen('freeze')}
            >
              {data.status === 'active' ? 'Freeze' : 'Unfreeze'}
            </button>
          </>
        )}
      </header>
      <p class="sub-head copied quiet">
        <span class="mono cut">{id}</span>
        <CopyButton text={id} label="Copy the id of the account" />
      </p>
      {failure !== undefined && <Failed failure={failure} onRetry={account.reload} />}
      <section class="panel" aria-label="Money">
        <dl class="stats">
          <Stat name="Available" usd={data?.availableUsd} more="for new calls" />
          <Stat name="Balance" usd={data?.balanceUsd} more="after all entries" />
          <Stat name="Held" usd={data?.heldUsd} more="for running calls and sandboxes" />
          <Stat name="Excess" usd={data?.excessUsd} more="charged above holds, paid by the platform" />
        </dl>
      </section>
      <section class="panel" aria-labelledby="keys-title">
        <header class="panel-head">
          <h2 id="keys-title">API keys</h2>
          <span class="grow" />
          {mayChange() && (
            <button type="button" class="button" onClick={() => setTask({ task: 'create' })}>
              <Icon name="plus" /> Create a key
            </button>
          )}
        </header>
        {keys.failure !== undefined && <Failed failure={keys.failure} onRetry={keys.reload} />}
        <KeysTable keys={keys.data?.items} onTask={mayChange() ? setTask : undefined} none="This account has no key." />
      </section>
      <UsagePanel accountId={id} />
      <section class="panel" aria-labelledby="users-title">
        <header class="panel-head">
          <h2 id="users-title">
            Users <span class="faint">of the console</span>
          </h2>
        </header>
        {users.failure !== undefined && <Failed failure={users.failure} onRetry={users.reload} />}
        <Table
          label="Users"
          caption="Users of the account"
          columns={USER_COLUMNS}
          rows={users.data?.items}
          keyOf={(user) => user.id}
          bones={1}
          none="No user signs in to this account."
        />
      </section>
      {(open === 'credits' || open === 'debits') && data !== undefined && (
        <BookDialog noun={open} account={data} onClose={close} onDone={closeAndReload} />
      )}
      {open === 'freeze' && data !== undefined && (
        <FreezeDialog account={data} onClose={close} onDone={closeAndReload} />
      )}
      <KeyDialogs
        task={task}
        path={`${path}/keys`}
        pathOf={(key) => `/admin/v1/keys/${key.id}`}
        models={models}
        onTask={setTask}
        onChanged={keys.reload}
      />
    </div>
  );
}

function Stat({
  name,
  usd,
  more,
}: {
  readonly name: string;
  readonly usd: string | null | undefined;
  readonly more: string;
}) {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd class="stat-value figure">
        {usd === undefined ? (
          <Bone width="5ch" />
        ) : usd === null ? (
          '–'
        ) : (
          <span title={exactUsd(usd)}>{shortUsd(usd)}</span>
        )}
      </dd>
      <dd class="stat-more">{usd === null ? 'the ledger does not answer' : more}</dd>
    </div>
  );
}

const USER_COLUMNS: readonly Column<User>[] = [
  { title: 'E-mail address', cell: ({ email }) => email },
  { title: 'Status', cell: ({ status }) => status },
  { title: 'Created', look: 'quiet small', cell: ({ createdAt }) => <Ago at={createdAt} /> },
];
