import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { exactUsd, shortUsd } from '../../../money';
import { plural, showCount, showPercent } from '../../../numbers';
import { ActDialog } from '../../../parts/act-dialog';
import { Ago } from '../../../parts/ago';
import { Badge, type Tone } from '../../../parts/badge';
import { Bone, Empty, Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { TextField } from '../../../parts/text-field';
import { useResource } from '../../../resource';
import type { List } from '../../../shapes';
import { showDuration } from '../../../times';
import { mayChange } from '../../session';
import type { Group, Rollout, RolloutCounts } from '../../shapes';

const EVERY_MS = 3_000;

type Order = 'promote' | 'pause' | 'resume' | 'rollback';

interface Open {
  readonly order: Order;
  readonly rollout: Rollout;
}

export function RolloutsPage() {
  const rollouts = useResource<List<Rollout>>('/admin/v1/rollouts', { everyMs: EVERY_MS });
  const [open, setOpen] = useState<Open>();
  const { data, failure } = rollouts;
  const close = () => setOpen(undefined);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Rollouts</h1>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={rollouts.reload} />}
      {data === undefined && failure === undefined && (
        <section class="panel" aria-label="Rollouts">
          <div class="panel-head">
            <Bone width="30ch" />
          </div>
        </section>
      )}
      {data?.items.length === 0 && (
        <section class="panel" aria-label="Rollouts">
          <Empty icon="rollouts" title="No rollout is configured">
            <p class="quiet">
              A rollout applies a change to a share of the calls first, and rolls it back if a guard fails. Configure it
              under <code>rollouts</code> of <code>gateway.config.yml</code>.
            </p>
          </Empty>
        </section>
      )}
      {data?.items.map((rollout) => (
        <OneRollout key={rollout.name} rollout={rollout} onOrder={(order) => setOpen({ order, rollout })} />
      ))}
      {open !== undefined && (
        <OrderDialog
          {...open}
          onClose={close}
          onDone={() => {
            close();
            rollouts.reload();
          }}
        />
      )}
    </div>
  );
}

const TONES: Readonly<Record<Rollout['status'], Tone>> = {
  'not begun': 'plain',
  running: 'accent',
  paused: 'warn',
  held: 'bad',
  'rolled-back': 'bad',
  completed: 'good',
};

function OneRollout({ rollout, onOrder }: { readonly rollout: Rollout; readonly onOrder: (order: Order) => void }) {
  const { name, change, status, share, stickyBy, waitsFor, reason, changedAt, stage, stages, guards } = rollout;
  const id = `rollout-${name}`;
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id} class="mono">
          {name}
        </h2>
        <Badge tone={TONES[status]}>{status.replace('-', ' ')}</Badge>
        <span class="grow" />
        {mayChange() &&
          ordersOf(status).map((order) => (
            <button
              key={order}
              type="button"
              class={order === 'rollback' ? 'button danger' : 'button'}
              onClick={() => onOrder(order)}
            >
              {ORDERS[order].verb}
              <span class="unseen"> {name}</span>
            </button>
          ))}
      </header>
      <div class="rollout">
        <p>
          {sentence(change)}{' '}
          <span class="quiet">
            for {share} % of calls, assigned by {stickyBy}.
          </span>
        </p>
        {reason !== null ? (
          <p class="quiet">
            {sentence(reason)} {changedAt !== null && <Ago at={changedAt} />}
          </p>
        ) : (
          waitsFor !== null && <p class="quiet">Waits for {waitsFor}.</p>
        )}
        <ol class="stages" aria-label={`Stages of ${name}`}>
          {stages.map((each, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: stages have no other key
            <li key={at} class={stageLook(rollout, at + 1)} aria-current={isIn(rollout, at + 1) ? 'step' : undefined}>
              <span class="stage-share figure">{each.share} %</span>
              <span class="small">
                {each.holdSeconds === 0
                  ? 'until promoted'
                  : showDuration(each.holdSeconds * 1_000).replace(/ 0 \w+$/, '')}
              </span>
              {isIn(rollout, at + 1) && rollout.stageEndsAt !== null && (
                <span class="small">
                  ends <Ago at={rollout.stageEndsAt} />
                </span>
              )}
            </li>
          ))}
        </ol>
        <p class="quiet small">
          {guards.length === 0 ? 'It has no guards.' : `Guards: ${guards.map(guardText).join('; ')}.`}
        </p>
      </div>
      <Table
        label={`Results of ${name}`}
        caption={`Results of ${name} in stage ${stage}`}
        columns={COLUMNS}
        rows={groupsOf(rollout)}
        keyOf={({ group }) => group}
      />
    </section>
  );
}

const sentence = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

function ordersOf(status: Rollout['status']): readonly Order[] {
  if (status === 'running') return ['promote', 'pause', 'rollback'];
  if (status === 'paused' || status === 'held') return ['promote', 'resume', 'rollback'];
  if (status === 'completed') return ['rollback'];
  return status === 'rolled-back' ? ['resume'] : [];
}

const isIn = ({ stage, status }: Rollout, at: number) => at === stage && ['running', 'paused', 'held'].includes(status);

function stageLook(rollout: Rollout, at: number): string {
  if (isIn(rollout, at)) return 'stage is-now';
  return rollout.status === 'completed' || (rollout.status !== 'rolled-back' && at < rollout.stage)
    ? 'stage is-done'
    : 'stage';
}

function guardText({ name, above, times, minCalls }: Rollout['guards'][number]): string {
  const what =
    name === 'errorRate'
      ? 'failed calls'
      : `calls beyond ${times} times the ${name === 'costRatio' ? 'median cost' : 'p95'} of control`;
  return `${what} at most ${showPercent(above)} more than of control, after ${plural(minCalls, 'call')}`;
}

interface Row extends RolloutCounts {
  readonly group: Group;
}

const GROUP_NAMES: Readonly<Record<Group, string>> = { control: 'Control', treatment: 'Treatment', shadow: 'Shadow' };

function groupsOf({ inStage, shadow }: Rollout): readonly Row[] {
  const groups: readonly Group[] = shadow === 0 ? ['control', 'treatment'] : ['control', 'treatment', 'shadow'];
  return groups.map((group) => ({ group, ...inStage[group] }));
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'In this stage', cell: ({ group }) => GROUP_NAMES[group] },
  { title: 'Calls', isNumber: true, cell: ({ calls }) => showCount(calls) },
  {
    title: 'Errors',
    isNumber: true,
    cell: ({ errors, errorRate }) => (
      <span title={plural(errors, 'error')}>{errorRate === null ? '–' : showPercent(errorRate)}</span>
    ),
  },
  { title: 'Callers affected', isNumber: true, room: 'from-m', cell: ({ callersHurt }) => showCount(callersHurt) },
  { title: 'First token p95', isNumber: true, room: 'from-m', cell: ({ p95FirstTokenMs: ms }) => took(ms) },
  { title: 'Whole answer p95', isNumber: true, room: 'from-m', cell: ({ p95WholeMs: ms }) => took(ms) },
  {
    title: 'Cost per call',
    isNumber: true,
    cell: ({ meanCostUsd: usd }) => (usd === null ? '–' : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>),
  },
];

function took(ms: number | null): string {
  return ms === null ? '–' : showDuration(ms);
}

const ORDERS: Readonly<Record<Order, { readonly verb: string; readonly says: (rollout: Rollout) => string }>> = {
  promote: {
    verb: 'Promote',
    says: ({ stage, stages }) => {
      const next = stages[stage];
      return next === undefined
        ? 'The last stage ends now. The rollout is complete, and its change applies to every call.'
        : `Stage ${stage + 1} begins now: ${next.share} % of calls get the change.`;
    },
  },
  pause: { verb: 'Pause', says: () => 'Its clock stops and its share stays. Its guards stay active.' },
  resume: {
    verb: 'Resume',
    says: ({ status }) =>
      status === 'rolled-back' ? 'It starts again with its first stage.' : 'Its clock continues where it stopped.',
  },
  rollback: { verb: 'Roll back', says: () => 'From the next call on, every caller is served as before the rollout.' },
};

interface OrderProps extends Open {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function OrderDialog({ order, rollout, onClose, onDone }: OrderProps) {
  const [reason, setReason] = useState('');
  const { verb, says } = ORDERS[order];
  // The order names the shown stage, so that the gateway rejects it if the stage has ended meanwhile.
  const body = { ...(order === 'promote' && { stage: rollout.stage }), ...(reason !== '' && { reason }) };
  const path = `/admin/v1/rollouts/${encodeURIComponent(rollout.name)}/${order}`;
  return (
    <ActDialog
      title={`${verb} ${rollout.name}?`}
      verb={verb}
      isDestructive={order === 'rollback'}
      done={`${rollout.name}: ${verb.toLowerCase()} is done.`}
      act={() => ask(path, { method: 'POST', body })}
      onDone={onDone}
      onClose={onClose}
      fields={['reason']}
    >
      {(errorOf) => (
        <>
          <p>{says(rollout)}</p>
          <TextField label="Reason" value={reason} onChange={setReason} error={errorOf('reason')} />
        </>
      )}
    </ActDialog>
  );
}
