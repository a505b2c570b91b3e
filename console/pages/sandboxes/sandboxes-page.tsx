import { withQuery } from '../../api';
import { exactUsd } from '../../money';
import { Pager } from '../../parts/pager';
import { Search } from '../../parts/search';
import { Segmented } from '../../parts/segmented';
import { Snippet } from '../../parts/snippet';
import { BoneRows, Empty, Failed } from '../../parts/states';
import { TableFrame } from '../../parts/table-frame';
import { useResource } from '../../resource';
import { changeQuery, go, hrefOf, place } from '../../router';
import type { Catalog, Sandbox, SandboxList } from '../../shapes';
import { showAgo, showDuration, showWhole } from '../../times';
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
          <Empty icon="sandboxes" title="There are no sandboxes here">
            <p class="quiet">The operator of this gateway has not switched them on.</p>
          </Empty>
        ) : data?.items.length === 0 && !isLoading ? (
          <NoSandboxes search={search} state={state} />
        ) : (
          <List items={data?.items} isStale={isLoading && data !== undefined} />
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

function List({ items, isStale }: { readonly items: readonly Sandbox[] | undefined; readonly isStale: boolean }) {
  return (
    <TableFrame label="Sandboxes" isStale={isStale}>
      <table>
        <caption class="unseen">Sandboxes, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Sandbox</th>
            <th scope="col">State</th>
            <th scope="col" class="from-m">
              Size
            </th>
            <th scope="col" class="from-m">
              Created
            </th>
            <th scope="col" class="number from-m">
              Lived
            </th>
            <th scope="col" class="from-l">
              Paid until
            </th>
            <th scope="col" class="number">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {items === undefined && <BoneRows rows={5} columns={7} />}
          {items?.map((sandbox) => (
            <tr
              key={sandbox.id}
              class="opens"
              onClick={(event) => {
                if (event.target instanceof Element && event.target.closest('a') === null)
                  go(`/sandboxes/${sandbox.id}`);
              }}
            >
              <th scope="row">
                <a class="plain-link" href={hrefOf(`/sandboxes/${sandbox.id}`)}>
                  {sandbox.offeringName}
                </a>
                <span class="sub faint small mono cut">{sandbox.id}</span>
              </th>
              <td>
                <StateBadge state={sandbox.lifecyclePhase} />
              </td>
              <td class="from-m quiet">{sizeOf(sandbox)}</td>
              <td class="from-m quiet">
                <time dateTime={sandbox.createdAt} title={showWhole(sandbox.createdAt)}>
                  {showAgo(sandbox.createdAt)}
                </time>
              </td>
              <td class="number from-m">{showDuration(livedMs(sandbox))}</td>
              <td class="from-l quiet">
                {sandbox.reservedUntil === null ? (
                  <span class="faint">–</span>
                ) : (
                  <time dateTime={sandbox.reservedUntil} title={showWhole(sandbox.reservedUntil)}>
                    {showAgo(sandbox.reservedUntil)}
                  </time>
                )}
              </td>
              <td class="number">{exactUsd(sandbox.totalCost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

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
      <Empty icon="search" title="No sandbox fits">
        <p class="quiet">Look for a part of its id, its offering, or its idempotency key.</p>
      </Empty>
    );
  }
  if (state === 'HISTORY') {
    return (
      <Empty icon="sandboxes" title="No past sandboxes">
        <p class="quiet">What has ended is kept here, with its bill.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="sandboxes" title={state === 'ACTIVE' ? 'No sandbox is running' : 'No sandboxes yet'}>
      <p class="quiet">A sandbox is made by a call, and costs by the second until it is terminated.</p>
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
