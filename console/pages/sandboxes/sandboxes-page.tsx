import { withQuery } from '../../api';
import { exactUsd } from '../../money';
import { Ago } from '../../parts/ago';
import { Pager } from '../../parts/pager';
import { Search } from '../../parts/search';
import { Segmented } from '../../parts/segmented';
import { Snippet } from '../../parts/snippet';
import { Empty, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { useResource } from '../../resource';
import { changeQuery, go, hrefOf, place } from '../../router';
import type { Catalog, Sandbox, SandboxList } from '../../shapes';
import { showDuration } from '../../times';
import { StateBadge } from './states';

const WHICH = [
  { value: 'ACTIVE', text: 'Active' },
  { value: 'HISTORY', text: 'Past' },
  { value: 'ALL', text: 'All' },
] as const;

const PAGE_ROWS = 50;
const EVERY_MS = 2_000;

export function SandboxesPage() {
  const { query } = place.value;
  const state = WHICH.find(({ value }) => value === query.get('state'))?.value ?? 'ACTIVE';
  const search = query.get('search') ?? '';
  const page = Math.max(1, Number(query.get('page') ?? 1) || 1);
  const path = withQuery('sandboxes', { state, search, page, pageSize: PAGE_ROWS });
  const sandboxes = useResource<SandboxList>(path, { everyMs: EVERY_MS });
  const { data, failure, isLoading } = sandboxes;
  const turn = (to: number) => changeQuery({ page: to === 1 ? undefined : String(to) });
  return (
    <div class="page">
      <header class="page-head">
        <h1>Sandboxes</h1>
      </header>
      <div class="toolbar">
        <Segmented
          label="Sandboxes to show"
          value={state}
          options={WHICH}
          onChange={(value) => changeQuery({ state: value === 'ACTIVE' ? undefined : value, page: undefined })}
        />
        <Search
          label="Search sandboxes"
          value={search}
          onChange={(words) => changeQuery({ search: words, page: undefined }, { replace: true })}
        />
      </div>
      {failure !== undefined && failure.status !== 404 && <Failed failure={failure} onRetry={sandboxes.reload} />}
      <section class="panel" aria-label="Sandboxes">
        {failure?.status === 404 ? (
          <Empty icon="sandboxes" title="Sandboxes are disabled">
            <p class="quiet">The operator of this gateway has not enabled them.</p>
          </Empty>
        ) : data?.items.length === 0 && !isLoading ? (
          <NoSandboxes search={search} state={state} />
        ) : (
          <Table
            label="Sandboxes"
            caption="Sandboxes, newest first"
            columns={COLUMNS}
            rows={data?.items}
            keyOf={({ id }) => id}
            bones={5}
            isStale={isLoading}
            open={({ id }) => go(`/sandboxes/${id}`)}
          />
        )}
      </section>
      {data !== undefined && (
        <Pager
          page={page}
          onNewer={page > 1 ? () => turn(page - 1) : undefined}
          onOlder={page * PAGE_ROWS < data.total ? () => turn(page + 1) : undefined}
        >
          {`Page ${page} of ${Math.max(1, Math.ceil(data.total / PAGE_ROWS))}`}
        </Pager>
      )}
    </div>
  );
}

const COLUMNS: readonly Column<Sandbox>[] = [
  {
    title: 'Sandbox',
    cell: ({ id, offeringName }) => (
      <>
        <a class="plain-link" href={hrefOf(`/sandboxes/${id}`)}>
          {offeringName}
        </a>
        <span class="sub faint small mono cut">{id}</span>
      </>
    ),
  },
  { title: 'State', cell: ({ lifecyclePhase }) => <StateBadge state={lifecyclePhase} /> },
  { title: 'Size', room: 'from-m', look: 'quiet', cell: (sandbox) => sizeOf(sandbox) },
  { title: 'Created', room: 'from-m', look: 'quiet', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: 'Lifetime', isNumber: true, room: 'from-m', cell: (sandbox) => showDuration(livedMs(sandbox)) },
  {
    title: 'Paid until',
    room: 'from-l',
    look: 'quiet',
    cell: ({ reservedUntil: at }) => (at === null ? <span class="faint">–</span> : <Ago at={at} />),
  },
  { title: 'Cost', isNumber: true, cell: ({ totalCost }) => exactUsd(totalCost) },
];

export function sizeOf({ resources: { cpu, memoryGiB, gpu } }: Pick<Sandbox, 'resources'>): string {
  const gpus = gpu.map(({ count, model }) => `, ${count} × ${model}`).join('');
  return `${cpu} CPU, ${memoryGiB} GiB${gpus}`;
}

function livedMs({ createdAt, terminatedAt }: Sandbox): number {
  return (terminatedAt === null ? Date.now() : Date.parse(terminatedAt)) - Date.parse(createdAt);
}

function NoSandboxes({ search, state }: { readonly search: string; readonly state: string }) {
  const catalog = useResource<Catalog>('catalog');
  if (search !== '') {
    return (
      <Empty icon="search" title="No matching sandboxes">
        <p class="quiet">Search for a part of the id, the offering, or the idempotency key.</p>
      </Empty>
    );
  }
  if (state === 'HISTORY') {
    return (
      <Empty icon="sandboxes" title="No past sandboxes">
        <p class="quiet">Sandboxes that have ended appear here with their bills.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="sandboxes" title={state === 'ACTIVE' ? 'No sandbox is running' : 'No sandboxes yet'}>
      <p class="quiet">Create a sandbox with a call. It costs money per second until you terminate it.</p>
      <Snippet name="create a sandbox" text={catalog.data && creationOf(catalog.data.publicUrl)} />
    </Empty>
  );
}

function creationOf(url: string): string {
  return `curl ${url}/v1/sandboxes \\
  -H "x-api-key: $TOLLGATE_API_KEY" \\
  -H "content-type: application/json" \\
  -d '{
    "selection": { "requirements": { "capabilities": ["exec"] } },
    "idempotencyKey": "first-sandbox"
  }'`;
}
