import { useState } from 'preact/hooks';
import { withQuery } from '../../api';
import { Icon } from '../../parts/icon';
import { Pager, usePages } from '../../parts/pager';
import { Search } from '../../parts/search';
import { Segmented } from '../../parts/segmented';
import { Empty, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { ApiKey, Catalog, List } from '../../shapes';
import { KeyDialogs, type KeyTask } from './key-dialogs';
import { KeysTable } from './keys-table';

const STATUSES = [
  { value: 'active', text: 'Active' },
  { value: 'revoked', text: 'Revoked' },
  { value: 'all', text: 'All' },
] as const;

const PAGE_ROWS = 50;
/** How often the keys are read again, because their spending grows while the page is open. */
const EVERY_MS = 5_000;

export function KeysPage() {
  const { query } = place.value;
  const search = query.get('search') ?? '';
  const status = STATUSES.find(({ value }) => value === query.get('status'))?.value ?? 'active';
  const filter = withQuery('keys', { search, status: status === 'all' ? undefined : status, limit: PAGE_ROWS });
  const pages = usePages(filter);
  const path = pages.cursor === undefined ? filter : `${filter}&cursor=${encodeURIComponent(pages.cursor)}`;
  const keys = useResource<List<ApiKey>>(path, { everyMs: EVERY_MS });
  const [task, setTask] = useState<KeyTask>();
  const isChoosing = task?.task === 'create' || task?.task === 'edit';
  const catalog = useResource<Catalog>(isChoosing ? 'catalog' : undefined);
  const { data, failure } = keys;
  const nextCursor = data?.nextCursor ?? null;
  const isFiltered = search !== '' || status !== 'active';
  const create = (
    <button type="button" class="button primary" onClick={() => setTask({ task: 'create' })}>
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
            nameHref={({ id }) => hrefOf(`/usage?key=${id}`)}
            isLastUseKnown
            onTask={setTask}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      <KeyDialogs
        task={task}
        path="keys"
        pathOf={({ id }) => `keys/${id}`}
        models={catalog.data?.models.map(({ name }) => name) ?? []}
        onTask={setTask}
        onChanged={keys.reload}
      />
    </div>
  );
}

function NoKeys({ isFiltered, create }: { readonly isFiltered: boolean; readonly create: preact.ComponentChildren }) {
  return isFiltered ? (
    <Empty icon="search" title="No matching keys">
      <p class="quiet">Search for a part of the name, or for the shown end of a key.</p>
    </Empty>
  ) : (
    <Empty icon="keys" title="No keys yet">
      <p class="quiet">
        Programs call the gateway with a key. A key can have a spending limit, a rate limit, and a list of models.
      </p>
      {create}
    </Empty>
  );
}
