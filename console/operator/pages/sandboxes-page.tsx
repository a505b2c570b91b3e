import { useState } from 'preact/hooks';
import { ask, withQuery } from '../../api';
import { exactUsd } from '../../money';
import { plural } from '../../numbers';
import { StateBadge, toWords } from '../../pages/sandboxes/states';
import { ActDialog } from '../../parts/act-dialog';
import { Ago } from '../../parts/ago';
import { Badge } from '../../parts/badge';
import { Pager, usePages } from '../../parts/pager';
import { Empty, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List } from '../../shapes';
import { mayChange } from '../session';
import type { Orphan, Sandbox, SandboxPlace } from '../shapes';

const STATES = ['PROVISIONING', 'RUNNING', 'SUSPENDED', 'UNKNOWN', 'FAILED', 'TERMINATED', 'ALL'] as const;
const EVERY_MS = 3_000;
const PAGE_ROWS = 50;

export function SandboxesPage() {
  const state = STATES.find((each) => each === place.value.query.get('state'));
  const filter = withQuery('/admin/v1/sandboxes', { state, limit: PAGE_ROWS });
  const pages = usePages(filter);
  const path = pages.cursor === undefined ? filter : `${filter}&cursor=${encodeURIComponent(pages.cursor)}`;
  const sandboxes = useResource<List<Sandbox>>(path, { everyMs: EVERY_MS });
  const { data, failure, isLoading } = sandboxes;
  const nextCursor = data?.nextCursor ?? null;
  if (failure?.status === 404) {
    return (
      <div class="page">
        <header class="page-head">
          <h1>Sandboxes</h1>
        </header>
        <section class="panel" aria-label="Sandboxes">
          <Empty icon="sandboxes" title="Sandboxes are disabled">
            <p class="quiet">
              To enable them, configure the plugin <code>sandbox</code> and a supplier in <code>system.config.yml</code>
              .
            </p>
          </Empty>
        </section>
      </div>
    );
  }
  return (
    <div class="page">
      <header class="page-head">
        <h1>Sandboxes</h1>
      </header>
      <div class="toolbar">
        <label class="inline-control">
          State
          <select value={state ?? ''} onChange={(event) => changeQuery({ state: event.currentTarget.value })}>
            <option value="">Active</option>
            {STATES.map((each) => (
              <option key={each} value={each}>
                {toWords(each)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {failure !== undefined && <Failed failure={failure} onRetry={sandboxes.reload} />}
      <section class="panel" aria-label="Sandboxes">
        <Table
          label="Sandboxes"
          caption="Sandboxes of all accounts, newest first"
          columns={COLUMNS}
          rows={data?.items}
          keyOf={({ id }) => id}
          isStale={isLoading}
          none={state === undefined ? 'No sandbox is active.' : 'No sandbox is in this state.'}
        />
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      <Orphans />
      <Places />
    </div>
  );
}

const COLUMNS: readonly Column<Sandbox>[] = [
  {
    title: 'Sandbox',
    cell: ({ id, offeringName }) => (
      <>
        {offeringName}
        <span class="sub faint small mono cut">{id}</span>
      </>
    ),
  },
  {
    title: 'State',
    cell: ({ lifecyclePhase, failure }) => (
      <>
        <StateBadge state={lifecyclePhase} />
        {failure !== null && <span class="sub faint small">{failure.message}</span>}
      </>
    ),
  },
  {
    title: 'Account',
    room: 'from-m',
    cell: ({ accountId }) => (
      <a class="mono" href={hrefOf(`/accounts/${accountId}`)}>
        {accountId.slice(0, 8)}
      </a>
    ),
  },
  { title: 'Supplier', room: 'from-m', cell: ({ supplier }) => supplier },
  { title: 'Created', room: 'from-m', look: 'quiet small', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    title: 'Paid until',
    room: 'from-l',
    look: 'quiet small',
    cell: ({ reservedUntil: at }) => (at === null ? <span class="faint">–</span> : <Ago at={at} />),
  },
  { title: 'Cost', isNumber: true, cell: ({ totalCost }) => exactUsd(totalCost) },
];

function Orphans() {
  const orphans = useResource<List<Orphan>>('/admin/v1/sandboxes/orphans', { everyMs: EVERY_MS });
  return (
    <section class="panel" aria-labelledby="orphans-title">
      <header class="panel-head">
        <h2 id="orphans-title">
          Orphans <span class="faint">instances at suppliers without a sandbox</span>
        </h2>
      </header>
      {orphans.failure !== undefined && <Failed failure={orphans.failure} onRetry={orphans.reload} />}
      <Table
        label="Orphans"
        caption="Orphans, newest first"
        columns={ORPHAN_COLUMNS}
        rows={orphans.data?.items}
        keyOf={({ id }) => id}
        bones={1}
        none="No supplier has an instance without a sandbox."
      />
    </section>
  );
}

const ORPHAN_COLUMNS: readonly Column<Orphan>[] = [
  { title: 'Instance', look: 'mono', cell: ({ name }) => <span class="cut key-name">{name}</span> },
  {
    title: 'State',
    cell: ({ removedAt, attempts }) =>
      removedAt === null ? (
        <Badge tone="warn">To be removed, {plural(attempts, 'attempt')}</Badge>
      ) : (
        <Badge tone="plain">
          Removed <Ago at={removedAt} />
        </Badge>
      ),
  },
  { title: 'Supplier', room: 'from-m', cell: ({ supplier }) => supplier },
  { title: 'Why', room: 'from-m', cell: ({ reason }) => reason },
  { title: 'Found', look: 'quiet small', cell: ({ foundAt }) => <Ago at={foundAt} /> },
];

function Places() {
  const places = useResource<Pick<List<SandboxPlace>, 'items'>>('/admin/v1/sandboxes/places', { everyMs: EVERY_MS });
  const [lost, setLost] = useState<SandboxPlace>();
  const actions: Column<SandboxPlace> = {
    title: <span class="unseen">Actions</span>,
    look: 'actions',
    cell: (each) =>
      each.silent && (
        <button type="button" class="button slight danger" onClick={() => setLost(each)}>
          Give up<span class="unseen"> {each.host}</span>
        </button>
      ),
  };
  if (places.data?.items.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="places-title">
      <header class="panel-head">
        <h2 id="places-title">
          Places <span class="faint">nodes that are the only way to some sandboxes</span>
        </h2>
      </header>
      {places.failure !== undefined && <Failed failure={places.failure} onRetry={places.reload} />}
      <Table
        label="Places"
        caption="Places, the last seen first"
        columns={mayChange() ? [...PLACE_COLUMNS, actions] : PLACE_COLUMNS}
        rows={places.data?.items}
        keyOf={({ id }) => id}
        bones={1}
      />
      {lost !== undefined && (
        <ActDialog
          title="Give up the place?"
          verb="Give up"
          isDestructive
          keep="Wait for it"
          done={`${lost.host} is given up.`}
          act={() =>
            ask(`/admin/v1/sandboxes/places/${encodeURIComponent(lost.id)}/lose`, { method: 'POST', body: {} })
          }
          onDone={() => {
            setLost(undefined);
            places.reload();
          }}
          onClose={() => setLost(undefined)}
        >
          {() => (
            <p>
              {plural(lost.activeSandboxes, 'sandbox', 'sandboxes')} of <strong>{lost.host}</strong> end as failed and
              cannot be restored. They are billed until the place was last seen.
            </p>
          )}
        </ActDialog>
      )}
    </section>
  );
}

const PLACE_COLUMNS: readonly Column<SandboxPlace>[] = [
  { title: 'Host', cell: ({ host }) => host },
  {
    title: 'State',
    cell: ({ silent, lostAt }) =>
      lostAt !== null ? (
        <Badge tone="plain">Given up</Badge>
      ) : (
        <Badge tone={silent ? 'bad' : 'good'}>{silent ? 'Silent' : 'Reached'}</Badge>
      ),
  },
  { title: 'Supplier', room: 'from-m', cell: ({ supplier }) => supplier },
  { title: 'Active sandboxes', isNumber: true, cell: ({ activeSandboxes }) => activeSandboxes },
  { title: 'Seen', look: 'quiet small', cell: ({ seenAt }) => <Ago at={seenAt} /> },
];
