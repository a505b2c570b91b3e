import { ask, withQuery } from '../api';
import { exactUsd } from '../money';
import { plural } from '../numbers';
import { StateBadge, toWords } from '../pages/sandboxes/states';
import { Button } from '../parts/button';
import { decide } from '../parts/dialog';
import { Page, Panel } from '../parts/page';
import { Pager, usePages } from '../parts/pager';
import { Empty } from '../parts/states';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../parts/table';
import { Choice } from '../parts/toolbar';
import { Badge, When } from '../parts/values';
import { useResource } from '../resource';
import { changeQuery, place } from '../router';
import type { List } from '../shapes';
import { AccountLink } from './accounts-page';
import { mayChange } from './session';
import type { Orphan, Sandbox, SandboxPlace } from './shapes';

const PATH = '/admin/v1/sandboxes';
const STATES = ['PROVISIONING', 'RUNNING', 'SUSPENDED', 'UNKNOWN', 'FAILED', 'TERMINATED', 'ALL'] as const;
const EVERY_MS = 3_000;
const PAGE_ROWS = 50;

export function SandboxesPage() {
  const state = STATES.find((each) => each === place.value.query.get('state'));
  const pages = usePages(withQuery(PATH, { state, limit: PAGE_ROWS }));
  const sandboxes = useResource<List<Sandbox>>(pages.path, { everyMs: EVERY_MS });
  if (sandboxes.failure?.status === 404) {
    const hint = (
      <>
        To enable them, configure the plugin <code>sandbox</code> and a supplier in <code>system.config.yml</code>.
      </>
    );
    return (
      <Page title="Sandboxes">
        <Panel label="Sandboxes">
          <Empty icon="sandboxes" title="Sandboxes are disabled" text={hint} />
        </Panel>
      </Page>
    );
  }
  const tools = (
    <div class="toolbar row">
      <Choice
        label="State"
        value={state ?? ''}
        options={[{ value: '', text: 'Active' }, ...STATES.map((value) => ({ value, text: toWords(value) }))]}
        onChange={(value) => changeQuery({ state: value })}
      />
    </div>
  );
  return (
    <Page title="Sandboxes" tools={tools} from={sandboxes}>
      <TablePanel
        title="Sandboxes"
        isWholePage
        caption="Sandboxes of all accounts, newest first"
        columns={COLUMNS}
        list={sandboxes}
        keyOf={({ id }) => id}
        none={state === undefined ? 'No sandbox is active.' : 'No sandbox is in this state.'}
      />
      <Pager {...pages.pagerOf(sandboxes.data)} />
      <Orphans />
      <Places />
    </Page>
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
  { title: 'Account', room: 'from-m', cell: ({ accountId }) => <AccountLink accountId={accountId} /> },
  { title: 'Supplier', room: 'from-m', cell: ({ supplier }) => supplier },
  timeColumn('Created', ({ createdAt }) => createdAt, { room: 'from-m' }),
  timeColumn('Paid until', ({ reservedUntil }) => reservedUntil, { room: 'from-l' }),
  { title: 'Cost', isNumber: true, cell: ({ totalCost }) => exactUsd(totalCost) },
];

function Orphans() {
  const orphans = useResource<List<Orphan>>(`${PATH}/orphans`, { everyMs: EVERY_MS });
  return (
    <TablePanel
      title="Orphans"
      hint="instances at suppliers without a sandbox"
      caption="Orphans, newest first"
      columns={ORPHAN_COLUMNS}
      list={orphans}
      keyOf={({ id }) => id}
      bones={1}
      none="No supplier has an instance without a sandbox."
    />
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
          Removed <When at={removedAt} />
        </Badge>
      ),
  },
  { title: 'Supplier', room: 'from-m', cell: ({ supplier }) => supplier },
  { title: 'Why', room: 'from-m', cell: ({ reason }) => reason },
  timeColumn('Found', ({ foundAt }) => foundAt),
];

function Places() {
  const places = useResource<Pick<List<SandboxPlace>, 'items'>>(`${PATH}/places`, { everyMs: EVERY_MS });
  if (places.data?.items.length === 0) return null;
  return (
    <TablePanel
      title="Places"
      hint="nodes that are the only way to some sandboxes"
      caption="Places, the last seen first"
      columns={mayChange() ? [...PLACE_COLUMNS, PLACE_ACTIONS] : PLACE_COLUMNS}
      list={places}
      keyOf={({ id }) => id}
      bones={1}
    />
  );
}

const PLACE_ACTIONS = actionsColumn<SandboxPlace>(
  (each) =>
    each.silent && (
      <Button look="slight danger" of={each.host} onClick={() => giveUp(each)}>
        Give up
      </Button>
    ),
);

function giveUp({ id, host, activeSandboxes }: SandboxPlace): void {
  decide({
    title: 'Give up the place?',
    verb: 'Give up',
    isDestructive: true,
    keep: 'Wait for it',
    text: (
      <p>
        {plural(activeSandboxes, 'sandbox', 'sandboxes')} of <strong>{host}</strong> end as failed and cannot be
        restored. They are billed until the place was last seen.
      </p>
    ),
    act: () => ask(`${PATH}/places/${encodeURIComponent(id)}/lose`, { method: 'POST', body: {} }),
    done: `${host} is given up.`,
  });
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
  timeColumn('Seen', ({ seenAt }) => seenAt),
];
