import { useState } from 'preact/hooks';
import { ask, withQuery } from '../../../api';
import { exactUsd, shortUsd } from '../../../money';
import { ActDialog } from '../../../parts/act-dialog';
import { Badge } from '../../../parts/badge';
import { Icon } from '../../../parts/icon';
import { Pager, usePages } from '../../../parts/pager';
import { Search } from '../../../parts/search';
import { Empty, Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { TextField } from '../../../parts/text-field';
import { useResource } from '../../../resource';
import { changeQuery, go, hrefOf, place } from '../../../router';
import type { List } from '../../../shapes';
import { showDate, showWhole } from '../../../times';
import { mayChange } from '../../session';
import type { Account } from '../../shapes';

const PAGE_ROWS = 50;
const EVERY_MS = 5_000;

export function AccountsPage() {
  const search = place.value.query.get('search') ?? '';
  const filter = withQuery('/admin/v1/accounts', { search, limit: PAGE_ROWS });
  const pages = usePages(filter);
  const path = pages.cursor === undefined ? filter : `${filter}&cursor=${encodeURIComponent(pages.cursor)}`;
  const accounts = useResource<List<Account>>(path, { everyMs: EVERY_MS });
  const [isCreating, setCreating] = useState(false);
  const { data, failure, isLoading } = accounts;
  const nextCursor = data?.nextCursor ?? null;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Accounts</h1>
        <span class="grow" />
        {mayChange() && (
          <button type="button" class="button primary" onClick={() => setCreating(true)}>
            <Icon name="plus" /> Create an account
          </button>
        )}
      </header>
      <div class="toolbar">
        <Search
          label="Search accounts, keys, users"
          value={search}
          onChange={(words) => changeQuery({ search: words }, { replace: true })}
        />
      </div>
      {failure !== undefined && <Failed failure={failure} onRetry={accounts.reload} />}
      <section class="panel" aria-label="Accounts">
        {data?.items.length === 0 && !isLoading ? (
          <NoAccounts isFiltered={search !== ''} />
        ) : (
          <Table
            label="Accounts"
            caption="Accounts, newest first"
            columns={COLUMNS}
            rows={data?.items}
            keyOf={({ id }) => id}
            bones={6}
            isStale={isLoading}
            open={({ id }) => go(`/accounts/${id}`)}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </div>
  );
}

const COLUMNS: readonly Column<Account>[] = [
  {
    title: 'Account',
    cell: ({ id, name }) => (
      <>
        <a class="plain-link cut key-name" href={hrefOf(`/accounts/${id}`)}>
          {name}
        </a>
        <span class="sub faint small mono cut">{id}</span>
      </>
    ),
  },
  { title: 'Status', cell: ({ status }) => <AccountStatus status={status} /> },
  { title: 'Available', isNumber: true, cell: ({ availableUsd }) => <Amount usd={availableUsd} /> },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
  { title: 'Markup', isNumber: true, room: 'from-l', look: 'quiet', cell: ({ markup }) => markup ?? '–' },
  {
    title: 'Created',
    room: 'from-m',
    look: 'quiet small',
    cell: ({ createdAt }) => (
      <time dateTime={createdAt} title={showWhole(createdAt)}>
        {showDate(createdAt)}
      </time>
    ),
  },
];

export function AccountStatus({ status }: Pick<Account, 'status'>) {
  return <Badge tone={status === 'active' ? 'good' : 'bad'}>{status === 'active' ? 'Active' : 'Frozen'}</Badge>;
}

/** Shows an amount. An amount that the ledger does not report is a dash, because it is not zero. */
export function Amount({ usd }: { readonly usd: string | null }) {
  return usd === null ? <>–</> : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>;
}

function NoAccounts({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty icon="search" title="No matching accounts">
      <p class="quiet">Search for a part of a name, an id, an e-mail address, or the shown end of a key.</p>
    </Empty>
  ) : (
    <Empty icon="user" title="No accounts yet">
      <p class="quiet">An account has API keys, and pays for the calls and sandboxes of its keys.</p>
    </Empty>
  );
}

function CreateDialog({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  return (
    <ActDialog
      title="Create an account"
      verb="Create the account"
      done="The account is created."
      act={async () => {
        const { id } = await ask<Account>('/admin/v1/accounts', { method: 'POST', body: { name } });
        go(`/accounts/${id}`);
      }}
      onDone={onClose}
      onClose={onClose}
      fields={['name']}
    >
      {(errorOf) => <TextField label="Name" isRequired value={name} onChange={setName} error={errorOf('name')} />}
    </ActDialog>
  );
}
