import { useState } from 'preact/hooks';
import { ask } from '../../api';
import { plural, showCount, showPercent } from '../../numbers';
import { Button } from '../../parts/button';
import { Dialog, decide, hide, showDialog, useAct } from '../../parts/dialog';
import { Input } from '../../parts/field';
import { Page } from '../../parts/page';
import { Empty, Failed } from '../../parts/states';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../../parts/table';
import { Badge, Fact, UpstreamState } from '../../parts/values';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List } from '../../shapes';
import { showDuration, showMaybeDuration } from '../../times';
import { mayChange } from '../session';
import type { Tested, Upstream } from '../shapes';
import { UpstreamSheet, Why } from './upstream-sheet';

const EVERY_MS = 3_000;

export function UpstreamsPage() {
  const upstreams = useResource<List<Upstream>>('/admin/v1/upstreams', { everyMs: EVERY_MS });
  const opened = upstreams.data?.items.find(({ name }) => name === place.value.query.get('upstream'));
  const hint = (
    <span class="quiet small">Health is what the node that answers knows. Disabling applies to every node.</span>
  );
  const howToAdd = (
    <>
      Add one under <code>serviceEndpoints</code> in <code>gateway.config.yml</code>.
    </>
  );
  return (
    <Page title="Upstreams" beside={hint} from={upstreams}>
      <TablePanel
        title="Upstreams"
        isWholePage
        caption="Upstreams and their state"
        columns={mayChange() ? [...COLUMNS, ACTIONS] : COLUMNS}
        list={upstreams}
        keyOf={({ name }) => name}
        lookOf={({ name }) => (name === opened?.name ? 'is-opened' : '')}
        empty={<Empty icon="upstreams" title="No upstream is configured" text={howToAdd} />}
      />
      {opened !== undefined && <UpstreamSheet upstream={opened} onClose={() => changeQuery({ upstream: undefined })} />}
    </Page>
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
    cell: ({ firstTokenMs }) => showMaybeDuration(firstTokenMs),
  },
  timeColumn('Last failure', ({ lastFailureAt }) => lastFailureAt, { room: 'from-m', none: 'None' }),
  { title: 'Tier', room: 'from-l', look: 'quiet', cell: ({ tier }) => tier },
];

const ACTIONS = actionsColumn<Upstream>((upstream) => {
  const { name, state } = upstream;
  const isConfigured = state !== 'disabled';
  return (
    <>
      {isConfigured && (
        <Button look="slight" of={name} onClick={() => showDialog(<TestDialog upstream={upstream} />)}>
          Test
        </Button>
      )}
      {isConfigured && state !== 'available' && (
        <Button look="slight" of={name} onClick={() => enable(upstream)}>
          Enable
        </Button>
      )}
      {isConfigured && state !== 'taken-out' && (
        <Button look="slight danger" of={name} onClick={() => disable(upstream)}>
          Disable
        </Button>
      )}
    </>
  );
});

function disable(upstream: Upstream): void {
  decide({
    title: 'Disable the upstream?',
    verb: 'Disable',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <>
        <p>
          Every node stops sending calls to <strong class="mono">{upstream.name}</strong> until you enable it. Running
          calls continue to their end.
        </p>
        <p class="quiet">The gateway refuses calls of models that only this upstream serves.</p>
      </>
    ),
    fields: [{ name: 'reason', label: 'Reason', hint: 'The page shows it beside the upstream and in the audit log.' }],
    act: (body) => ask(`${pathOf(upstream)}/disable`, { method: 'POST', body }),
    done: `${upstream.name} is disabled.`,
  });
}

function enable(upstream: Upstream): void {
  decide({
    title: 'Enable the upstream?',
    verb: 'Enable',
    text: (
      <p>
        Every node sends calls to <strong class="mono">{upstream.name}</strong> again, and forgets its failures.
      </p>
    ),
    act: () => ask(`${pathOf(upstream)}/enable`, { method: 'POST', body: {} }),
    done: `${upstream.name} is enabled.`,
  });
}

export const pathOf = ({ name }: Upstream) => `/admin/v1/upstreams/${encodeURIComponent(name)}`;

/** A dialog that makes one small real call to an upstream and shows the result. */
function TestDialog({ upstream }: { readonly upstream: Upstream }) {
  const [model, setModel] = useState('');
  const [tested, setTested] = useState<Tested>();
  const { failure, isBusy, run } = useAct(async () => {
    setTested(undefined);
    const body = model === '' ? {} : { model };
    setTested(await ask<Tested>(`${pathOf(upstream)}/test`, { method: 'POST', body }));
  });
  const models = upstream.models.map(({ name }) => ({ value: name, text: name }));
  return (
    <Dialog title={`Test ${upstream.name}`}>
      <form class="form stack" onSubmit={run}>
        <p class="quiet">The test makes one small real call. The vendor charges you for it, and no account pays.</p>
        <Input
          label="Model"
          options={[{ value: '', text: 'The cheapest' }, ...models]}
          value={model}
          onChange={setModel}
        />
        <div aria-live="polite">{tested !== undefined && <Outcome tested={tested} />}</div>
        {failure !== undefined && <Failed failure={failure} />}
        <div class="dialog-feet row">
          <Button onClick={hide}>Close</Button>
          <button type="submit" class="button primary" disabled={isBusy}>
            {isBusy ? 'Calling …' : tested === undefined ? 'Test' : 'Test again'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Outcome({ tested: { ok, status, ms, model, protocol, problem } }: { readonly tested: Tested }) {
  return (
    <dl class="facts">
      <Fact name="Outcome">
        <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'Answered' : 'Failed'}</Badge>
      </Fact>
      {problem !== null && <Fact name="Problem">{problem}</Fact>}
      <Fact name="Status">{status ?? 'no answer'}</Fact>
      <Fact name="Duration">{showDuration(ms)}</Fact>
      <Fact name="Call">
        <span class="mono">{model}</span>, {protocol}
      </Fact>
    </dl>
  );
}
