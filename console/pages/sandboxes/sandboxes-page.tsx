import { withQuery } from '../../api';
import { exactUsd } from '../../money';
import { Page, Panel } from '../../parts/page';
import { Pager } from '../../parts/pager';
import { Snippet } from '../../parts/snippet';
import { Empty } from '../../parts/states';
import { type Column, Table, timeColumn } from '../../parts/table';
import { chosenIn, QueryChoice, QuerySearch } from '../../parts/toolbar';
import { useResource } from '../../resource';
import { changeQuery, go, hrefOf, place } from '../../router';
import type { Catalog, Sandbox, SandboxList } from '../../shapes';
import { showDuration } from '../../times';
import { livedMs, StateBadge, sizeOf } from './states';

const WHICH = [
  { value: 'ACTIVE', text: 'Active' },
  { value: 'HISTORY', text: 'Past' },
  { value: 'ALL', text: 'All' },
] as const;

const PAGE_ROWS = 50;
const EVERY_MS = 2_000;

export function SandboxesPage() {
  const { query } = place.value;
  const state = chosenIn('state', WHICH);
  const search = query.get('search') ?? '';
  const page = Math.max(1, Number(query.get('page') ?? 1) || 1);
  const path = withQuery('sandboxes', { state, search, page, pageSize: PAGE_ROWS });
  const sandboxes = useResource<SandboxList>(path, { everyMs: EVERY_MS });
  const { data, failure } = sandboxes;
  const turn = (to: number) => changeQuery({ page: to === 1 ? undefined : String(to) });
  const tools = (
    <div class="toolbar row">
      <QueryChoice label="Sandboxes to show" name="state" options={WHICH} />
      <QuerySearch label="Search sandboxes" name="search" />
    </div>
  );
  const isDisabled = failure?.status === 404;
  return (
    <Page title="Sandboxes" tools={tools} from={{ failure: isDisabled ? undefined : failure }}>
      <Panel label="Sandboxes">
        {isDisabled ? (
          <Empty
            icon="sandboxes"
            title="Sandboxes are disabled"
            text="The operator of this gateway has not enabled them."
          />
        ) : (
          <Table
            label="Sandboxes"
            caption="Sandboxes, newest first"
            columns={COLUMNS}
            list={sandboxes}
            keyOf={({ id }) => id}
            bones={5}
            open={({ id }) => go(`/sandboxes/${id}`)}
            empty={<NoSandboxes search={search} state={state} />}
          />
        )}
      </Panel>
      {data !== undefined && (
        <Pager
          page={page}
          onNewer={page > 1 ? () => turn(page - 1) : undefined}
          onOlder={page * PAGE_ROWS < data.total ? () => turn(page + 1) : undefined}
        >
          {`Page ${page} of ${Math.max(1, Math.ceil(data.total / PAGE_ROWS))}`}
        </Pager>
      )}
    </Page>
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
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-m', look: 'quiet' }),
  { title: 'Lifetime', isNumber: true, room: 'from-m', cell: (sandbox) => showDuration(livedMs(sandbox)) },
  timeColumn('Paid until', ({ reservedUntil }) => reservedUntil, { room: 'from-l', look: 'quiet' }),
  { title: 'Cost', isNumber: true, cell: ({ totalCost }) => exactUsd(totalCost) },
];

function NoSandboxes({ search, state }: { readonly search: string; readonly state: string }) {
  const catalog = useResource<Catalog>('catalog');
  if (search !== '') {
    const text = 'Search for a part of the id, the offering, or the idempotency key.';
    return <Empty icon="search" title="No matching sandboxes" text={text} />;
  }
  if (state === 'HISTORY') {
    const text = 'Sandboxes that have ended appear here with their bills.';
    return <Empty icon="sandboxes" title="No past sandboxes" text={text} />;
  }
  return (
    <Empty
      icon="sandboxes"
      title={state === 'ACTIVE' ? 'No sandbox is running' : 'No sandboxes yet'}
      text="Create a sandbox with a call. It costs money per second until you terminate it."
    >
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
