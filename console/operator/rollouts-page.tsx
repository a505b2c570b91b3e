import { ask } from '../api';
import { plural, showCount, showPercent } from '../numbers';
import { Button } from '../parts/button';
import { decide } from '../parts/dialog';
import { Page, Panel } from '../parts/page';
import { Bone, Empty } from '../parts/states';
import { type Column, Table } from '../parts/table';
import { Amount, Badge, type Tone, When } from '../parts/values';
import { useResource } from '../resource';
import type { List } from '../shapes';
import { showDuration, showMaybeDuration } from '../times';
import { mayChange } from './session';
import type { Group, Rollout, RolloutCounts } from './shapes';

const EVERY_MS = 3_000;

type Order = 'promote' | 'pause' | 'resume' | 'rollback';

export function RolloutsPage() {
  const rollouts = useResource<List<Rollout>>('/admin/v1/rollouts', { everyMs: EVERY_MS });
  const { data, failure } = rollouts;
  const hint = (
    <>
      A rollout applies a change to a share of the calls first, and rolls it back if a guard fails. Configure it under{' '}
      <code>rollouts</code> of <code>gateway.config.yml</code>.
    </>
  );
  return (
    <Page title="Rollouts" from={rollouts}>
      {data === undefined && failure === undefined && (
        <Panel label="Rollouts">
          <div class="panel-head row">
            <Bone width="30ch" />
          </div>
        </Panel>
      )}
      {data?.items.length === 0 && (
        <Panel label="Rollouts">
          <Empty icon="rollouts" title="No rollout is configured" text={hint} />
        </Panel>
      )}
      {data?.items.map((rollout) => (
        <OneRollout key={rollout.name} rollout={rollout} />
      ))}
    </Page>
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

function OneRollout({ rollout }: { readonly rollout: Rollout }) {
  const { name, change, status, share, stickyBy, waitsFor, reason, changedAt, stage, stages, guards } = rollout;
  const actions =
    mayChange() &&
    ordersOf(status).map((each) => (
      <Button
        key={each}
        look={each === 'rollback' ? 'danger' : undefined}
        of={name}
        onClick={() => order(each, rollout)}
      >
        {ORDERS[each].verb}
      </Button>
    ));
  return (
    <Panel
      title={<span class="mono">{name}</span>}
      beside={<Badge tone={TONES[status]}>{status.replace('-', ' ')}</Badge>}
      actions={actions}
    >
      <div class="rollout stack small">
        <p>
          {sentence(change)}{' '}
          <span class="quiet">
            for {share} % of calls, assigned by {stickyBy}.
          </span>
        </p>
        {reason !== null ? (
          <p class="quiet">
            {sentence(reason)} {changedAt !== null && <When at={changedAt} />}
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
                  ends <When at={rollout.stageEndsAt} />
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
    </Panel>
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
  {
    title: 'First token p95',
    isNumber: true,
    room: 'from-m',
    cell: ({ p95FirstTokenMs }) => showMaybeDuration(p95FirstTokenMs),
  },
  {
    title: 'Whole answer p95',
    isNumber: true,
    room: 'from-m',
    cell: ({ p95WholeMs }) => showMaybeDuration(p95WholeMs),
  },
  { title: 'Cost per call', isNumber: true, cell: ({ meanCostUsd }) => <Amount usd={meanCostUsd} /> },
];

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

function order(which: Order, rollout: Rollout): void {
  const { name, stage } = rollout;
  const { verb, says } = ORDERS[which];
  decide({
    title: `${verb} ${name}?`,
    verb,
    isDestructive: which === 'rollback',
    text: <p>{says(rollout)}</p>,
    fields: [{ name: 'reason', label: 'Reason' }],
    act: (values) =>
      ask(`/admin/v1/rollouts/${encodeURIComponent(name)}/${which}`, {
        method: 'POST',
        // The request names the rollout stage that the page shows. The gateway rejects the request if that stage has ended meanwhile.
        body: { ...(which === 'promote' && { stage }), ...values },
      }),
    done: `${name}: ${verb.toLowerCase()} is done.`,
  });
}
