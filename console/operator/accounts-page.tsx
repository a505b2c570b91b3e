import { ask, withQuery } from '../api';
import { Button } from '../parts/button';
import { decide } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Page } from '../parts/page';
import { Pager, usePages } from '../parts/pager';
import { Empty } from '../parts/states';
import { type Column, TablePanel, timeColumn } from '../parts/table';
import { QuerySearch } from '../parts/toolbar';
import { Amount, Badge, Named } from '../parts/values';
import { useResource } from '../resource';
import { go, hrefOf, place } from '../router';
import type { List } from '../shapes';
import { showDate } from '../times';
import { mayChange } from './session';
import type { Account } from './shapes';

const PATH = '/admin/v1/accounts';
const PAGE_ROWS = 50;
const EVERY_MS = 5_000;

export function AccountsPage() {
  const search = place.value.query.get('search') ?? '';
  const pages = usePages(withQuery(PATH, { search, limit: PAGE_ROWS }));
  const accounts = useResource<List<Account>>(pages.path, { everyMs: EVERY_MS });
  const actions = mayChange() && (
    <Button look="primary" onClick={create}>
      <Icon name="plus" /> Create an account
    </Button>
  );
  const tools = (
    <div class="toolbar row">
      <QuerySearch label="Search accounts, keys, users" name="search" />
    </div>
  );
  const empty =
    search !== '' ? (
      <Empty
        icon="search"
        title="No matching accounts"
        text="Search for a part of a name, an id, an e-mail address, or the shown end of a key."
      />
    ) : (
      <Empty
        icon="user"
        title="No accounts yet"
        text="An account has API keys, and pays for the calls and sandboxes of its keys."
      />
    );
  return (
    <Page title="Accounts" actions={actions} tools={tools} from={accounts}>
      <TablePanel
        title="Accounts"
        isWholePage
        caption="Accounts, newest first"
        columns={COLUMNS}
        list={accounts}
        keyOf={({ id }) => id}
        bones={6}
        open={({ id }) => go(`/accounts/${id}`)}
        empty={empty}
      />
      <Pager {...pages.pagerOf(accounts.data)} />
    </Page>
  );
}

const COLUMNS: readonly Column<Account>[] = [
  {
    title: 'Account',
    cell: ({ id, name }) => <Named name={name} href={hrefOf(`/accounts/${id}`)} sub={id} />,
  },
  { title: 'Status', cell: ({ status }) => <AccountStatus status={status} /> },
  { title: 'Available', isNumber: true, cell: ({ availableUsd }) => <Amount usd={availableUsd} /> },
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
  { title: 'Markup', isNumber: true, room: 'from-l', look: 'quiet', cell: ({ markup }) => markup ?? '–' },
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-m', as: showDate }),
];

export function AccountStatus({ status }: Pick<Account, 'status'>) {
  return <Badge tone={status === 'active' ? 'good' : 'bad'}>{status === 'active' ? 'Active' : 'Frozen'}</Badge>;
}

export function AccountLink({ accountId }: { readonly accountId: string }) {
  return (
    <a class="mono" href={hrefOf(`/accounts/${accountId}`)}>
      {accountId.slice(0, 8)}
    </a>
  );
}

function create(): void {
  decide({
    title: 'Create an account',
    verb: 'Create the account',
    fields: [{ name: 'name', label: 'Name', isRequired: true }],
    act: (body) => ask<Account>(PATH, { method: 'POST', body }),
    done: 'The account is created.',
    onDone: ({ id }) => go(`/accounts/${id}`),
  });
}
