import { useState } from 'preact/hooks';
import { plural, showCount, showPercent } from '../../../numbers';
import { Ago } from '../../../parts/ago';
import { Empty, Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { UpstreamState } from '../../../parts/upstream-state';
import { useResource } from '../../../resource';
import { changeQuery, hrefOf, place } from '../../../router';
import type { List } from '../../../shapes';
import { showDuration } from '../../../times';
import { mayChange } from '../../session';
import type { Upstream } from '../../shapes';
import { DisableDialog, EnableDialog } from './disable-dialog';
import { TestDialog } from './test-dialog';
import { UpstreamSheet } from './upstream-sheet';
import { Why } from './why';

const EVERY_MS = 3_000;

interface Open {
  readonly dialog: 'test' | 'disable' | 'enable';
  readonly upstream: Upstream;
}

export function UpstreamsPage() {
  const upstreams = useResource<List<Upstream>>('/admin/v1/upstreams', { everyMs: EVERY_MS });
  const [open, setOpen] = useState<Open>();
  const { data, failure } = upstreams;
  const looked = data?.items.find(({ name }) => name === place.value.query.get('upstream'));
  const close = () => setOpen(undefined);
  const closeAndReload = () => {
    close();
    upstreams.reload();
  };
  const actions = (upstream: Upstream) => (
    <Actions upstream={upstream} onAct={(dialog) => setOpen({ dialog, upstream })} />
  );
  return (
    <div class="page">
      <header class="page-head">
        <h1>Upstreams</h1>
        <span class="quiet small">Health is what the node that answers knows. Disabling applies to every node.</span>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={upstreams.reload} />}
      <section class="panel" aria-label="Upstreams">
        {data?.items.length === 0 ? (
          <Empty icon="upstreams" title="No upstream is configured">
            <p class="quiet">
              Add one under <code>serviceEndpoints</code> in <code>gateway.config.yml</code>.
            </p>
          </Empty>
        ) : (
          <Table
            label="Upstreams"
            caption="Upstreams and their state"
            columns={
              mayChange()
                ? [...COLUMNS, { title: <span class="unseen">Actions</span>, look: 'actions', cell: actions }]
                : COLUMNS
            }
            rows={data?.items}
            keyOf={({ name }) => name}
            lookOf={({ name }) => (name === looked?.name ? 'is-opened' : '')}
            bones={3}
          />
        )}
      </section>
      {looked !== undefined && open === undefined && (
        <UpstreamSheet upstream={looked} onClose={() => changeQuery({ upstream: undefined })} />
      )}
      {open?.dialog === 'test' && <TestDialog upstream={open.upstream} onClose={closeAndReload} />}
      {open?.dialog === 'disable' && <DisableDialog upstream={open.upstream} onClose={close} onDone={closeAndReload} />}
      {open?.dialog === 'enable' && <EnableDialog upstream={open.upstream} onClose={close} onDone={closeAndReload} />}
    </div>
  );
}

const COLUMNS: readonly Column<Upstream>[] = [
  {
    title: 'Upstream',
    cell: ({ name, url }) => (
      <>
        <a class="plain-link mono cut key-name" href={hrefOf(`/upstreams?upstream=${encodeURIComponent(name)}`)}>
          {name}
        </a>
        <span class="sub faint small cut from-m">{new URL(url).host}</span>
      </>
    ),
  },
  {
    title: 'State',
    cell: (upstream) => (
      <>
        <UpstreamState state={upstream.state} />
        <Why upstream={upstream} />
      </>
    ),
  },
  { title: 'Success', isNumber: true, cell: ({ successRate: rate }) => (rate === null ? '–' : showPercent(rate)) },
  {
    title: 'Failures in a row',
    isNumber: true,
    room: 'from-l',
    cell: ({ consecutiveFailures }) => showCount(consecutiveFailures),
  },
  {
    title: 'Attempts',
    isNumber: true,
    room: 'from-l',
    cell: ({ attempts: { answered, failed } }) => (
      <span title={`${plural(answered, 'answer')}, ${plural(failed, 'failure')}`}>{showCount(answered + failed)}</span>
    ),
  },
  {
    title: 'First token',
    isNumber: true,
    room: 'from-m',
    cell: ({ firstTokenMs: ms }) => (ms === null ? '–' : showDuration(ms)),
  },
  {
    title: 'Last failure',
    room: 'from-m',
    look: 'quiet small',
    cell: ({ lastFailureAt: at }) => (at === null ? 'None' : <Ago at={at} />),
  },
  { title: 'Tier', room: 'from-l', look: 'quiet', cell: ({ tier }) => tier },
];

function Actions({ upstream, onAct }: { readonly upstream: Upstream; readonly onAct: (what: Open['dialog']) => void }) {
  const { name, state } = upstream;
  const isOut = ['taken-out', 'ejected', 'probing', 'resting'].includes(state);
  return (
    <>
      {state !== 'disabled' && (
        <button type="button" class="button slight" onClick={() => onAct('test')}>
          Test<span class="unseen"> {name}</span>
        </button>
      )}
      {isOut && (
        <button type="button" class="button slight" onClick={() => onAct('enable')}>
          Enable<span class="unseen"> {name}</span>
        </button>
      )}
      {state !== 'taken-out' && state !== 'disabled' && (
        <button type="button" class="button slight danger" onClick={() => onAct('disable')}>
          Disable<span class="unseen"> {name}</span>
        </button>
      )}
    </>
  );
}
