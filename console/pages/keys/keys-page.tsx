import { useState } from 'preact/hooks';
import { withQuery } from '../../api';
import { Icon } from '../../parts/icon';
import { Pager, usePages } from '../../parts/pager';
import { Search } from '../../parts/search';
import { Segmented } from '../../parts/segmented';
import { Empty, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { changeQuery, place } from '../../router';
import type { ApiKey, List, NewApiKey } from '../../shapes';
import { KeyDialog } from './key-dialog';
import { KeysTable } from './keys-table';
import { RevokeDialog } from './revoke-dialog';
import { RotateDialog } from './rotate-dialog';
import { SecretDialog } from './secret-dialog';

const STATUSES = [
  { value: 'active', text: 'Active' },
  { value: 'revoked', text: 'Revoked' },
  { value: 'all', text: 'All' },
] as const;

type Open =
  | { readonly dialog: 'create' }
  | { readonly dialog: 'edit' | 'rotate' | 'revoke'; readonly key: ApiKey }
  | { readonly dialog: 'secret'; readonly made: NewApiKey };

const PAGE_ROWS = 50;
/** What a key has spent goes up while one looks. */
const EVERY_MS = 5_000;

export function KeysPage() {
  const { query } = place.value;
  const search = query.get('search') ?? '';
  const status = STATUSES.find(({ value }) => value === query.get('status'))?.value ?? 'active';
  const filter = withQuery('keys', { search, status: status === 'all' ? undefined : status, limit: PAGE_ROWS });
  const pages = usePages(filter);
  const path = pages.cursor === undefined ? filter : `${filter}&cursor=${encodeURIComponent(pages.cursor)}`;
  const keys = useResource<List<ApiKey>>(path, { everyMs: EVERY_MS });
  const [open, setOpen] = useState<Open>();

  const showSecret = (made: NewApiKey) => {
    setOpen({ dialog: 'secret', made });
    keys.reload();
  };
  const close = () => setOpen(undefined);
  const closeAndReload = () => {
    close();
    keys.reload();
  };
  const { data, failure } = keys;
  const nextCursor = data?.nextCursor ?? null;
  const isFiltered = search !== '' || status !== 'active';
  const create = (
    <button type="button" class="button primary" onClick={() => setOpen({ dialog: 'create' })}>
      <Icon name="plus" /> Create a key
    </button>
  );
  return (
    <div class="page">
      <header class="page-head">
        <h1>API Keys</h1>
        <span class="grow" />
        {create}
      </header>
      <div class="toolbar">
        <Search
          label="Search keys"
          value={search}
          onChange={(words) => changeQuery({ search: words }, { replace: true })}
        />
        <Segmented
          label="Keys to show"
          value={status}
          options={STATUSES}
          onChange={(value) => changeQuery({ status: value === 'active' ? undefined : value })}
        />
      </div>
      {failure !== undefined && <Failed failure={failure} onRetry={keys.reload} />}
      <section class="panel" aria-label="Keys">
        {data?.items.length === 0 && !keys.isLoading ? (
          <NoKeys isFiltered={isFiltered} create={create} />
        ) : (
          <KeysTable
            keys={data?.items}
            isStale={keys.isLoading && data !== undefined}
            onEdit={(key) => setOpen({ dialog: 'edit', key })}
            onRotate={(key) => setOpen({ dialog: 'rotate', key })}
            onRevoke={(key) => setOpen({ dialog: 'revoke', key })}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      {open?.dialog === 'create' && <KeyDialog onClose={close} onMade={showSecret} />}
      {open?.dialog === 'edit' && <KeyDialog apiKey={open.key} onClose={close} onChanged={closeAndReload} />}
      {open?.dialog === 'rotate' && <RotateDialog apiKey={open.key} onClose={close} onMade={showSecret} />}
      {open?.dialog === 'revoke' && <RevokeDialog apiKey={open.key} onClose={close} onRevoked={closeAndReload} />}
      {open?.dialog === 'secret' && <SecretDialog made={open.made} onClose={close} />}
    </div>
  );
}

function NoKeys({ isFiltered, create }: { readonly isFiltered: boolean; readonly create: preact.ComponentChildren }) {
  return isFiltered ? (
    <Empty icon="search" title="No key fits">
      <p class="quiet">Look for a part of the name, or of the end of the key.</p>
    </Empty>
  ) : (
    <Empty icon="keys" title="No keys yet">
      <p class="quiet">A key is what programs call with. It can have a spending limit, a rate, and a list of models.</p>
      {create}
    </Empty>
  );
}
