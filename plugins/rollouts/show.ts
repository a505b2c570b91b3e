import { Counter, Gauge } from 'prom-client';
import { metrics } from '../../core/base/metrics';
import { formatUsd } from '../../core/base/money';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { listOf, object, oneOf, orNull, shape } from '../../core/http/shape';
import { describeChange } from '../../core/rollouts/plan';
import type { Rollout } from '../../core/rollouts/rollout';
import { decideRollout } from './decide';
import {
  addCounts,
  bucketOfShare,
  countOf,
  type GuardCounts,
  type Measure,
  measured,
  NOTHING_SEEN,
  upTo,
} from './guards';
import { progressOf, type RolloutRow, type SeenOfRun } from './store';

export const STATUSES = ['not begun', 'running', 'paused', 'held', 'rolled-back', 'completed'] as const;
const GROUPS = ['control', 'treatment', 'shadow'] as const;

/**
 * Shows a rollout to operators. `row` (its row in Postgres) and `seen` (its counts) belong to its current run. `row` is absent until a node
 * has begun the rollout.
 */
export function showRollout(rollout: Rollout, row: RolloutRow | undefined, seen: SeenOfRun, nowMs: number) {
  const { name, change, stickyBy, stages, guards, shadow, onAbort } = rollout;
  const stage = row?.stage ?? 1;
  const current = stages[stage - 1];
  const share = row?.shares[stage - 1] ?? 0;
  const isUnderWay = row?.status === 'running' || row?.status === 'paused';
  const endsAtMs = (row?.stage_since.getTime() ?? 0) + (current?.holdMs ?? 0);
  return {
    name,
    change: describeChange(change),
    stickyBy,
    status: row?.status ?? 'not begun',
    stage,
    share: row?.status === 'rolled-back' || row === undefined ? 0 : asPercent(share),
    stageSince: row?.stage_since.toISOString() ?? null,
    stageEndsAt: row?.status === 'running' ? new Date(endsAtMs).toISOString() : null,
    waitsFor: row !== undefined && isUnderWay ? decideRollout(rollout, progressOf(row), seen, nowMs).why : null,
    reason: row?.reason ?? null,
    changedAt: row?.changed_at.toISOString() ?? null,
    stages: stages.map(({ share: planned, holdMs }) => ({ share: asPercent(planned), holdSeconds: holdMs / 1_000 })),
    guards: guards.map((guard) => ({ ...guard, times: guard.name === 'errorRate' ? null : guard.times })),
    shadow: asPercent(shadow),
    onAbort,
    inStage: byGroup((group) => seen(stage, group) ?? NOTHING_SEEN),
    inAll: byGroup((group) =>
      [...stages.keys(), stages.length].map((each) => seen(each, group) ?? NOTHING_SEEN).reduce(addCounts),
    ),
  };
}

function byGroup(countsOf: (group: (typeof GROUPS)[number]) => GuardCounts) {
  const shown = (group: (typeof GROUPS)[number]) => showCounts(countsOf(group));
  return { control: shown('control'), treatment: shown('treatment'), shadow: shown('shadow') };
}

function showCounts(counts: GuardCounts) {
  const [calls, errors, costE8] = [countOf(counts, 'calls'), countOf(counts, 'errors'), countOf(counts, 'costE8')];
  const charged = measured(counts, 'cost');
  const p95 = (measure: Measure) => {
    const bucket = bucketOfShare(counts, measure, 0.05);
    return bucket === undefined ? null : Math.round(upTo(bucket));
  };
  return {
    calls,
    errors,
    errorRate: calls === 0 ? null : errors / calls,
    callersHurt: countOf(counts, 'hurt'),
    streams: measured(counts, 'firstToken'),
    p95FirstTokenMs: p95('firstToken'),
    wholeAnswers: measured(counts, 'whole'),
    p95WholeMs: p95('whole'),
    costUsd: formatUsd(BigInt(costE8)),
    meanCostUsd: charged === 0 ? null : formatUsd(BigInt(Math.floor(costE8 / charged))),
  };
}

function asPercent(share: number): number {
  return Number((share * 100).toFixed(4));
}

const COUNTS = object({
  calls: shape.integer,
  errors: shape.integer,
  errorRate: orNull(shape.number),
  callersHurt: shape.integer,
  streams: shape.integer,
  p95FirstTokenMs: orNull(shape.integer),
  wholeAnswers: shape.integer,
  p95WholeMs: orNull(shape.integer),
  costUsd: shape.usd,
  meanCostUsd: orNull(shape.usd),
});

const BY_GROUP = object({ control: COUNTS, treatment: COUNTS, shadow: COUNTS });

/** The result of `showRollout` in the OpenAPI document. */
export const SHOWN_ROLLOUT = object({
  name: shape.text,
  change: shape.text,
  stickyBy: oneOf('account', 'key', 'request'),
  status: oneOf(...STATUSES),
  stage: shape.integer,
  share: shape.number,
  stageSince: orNull(shape.time),
  stageEndsAt: orNull(shape.time),
  waitsFor: orNull(shape.text),
  reason: orNull(shape.text),
  changedAt: orNull(shape.time),
  stages: listOf(object({ share: shape.number, holdSeconds: shape.number })),
  guards: listOf(
    object({ name: shape.text, above: shape.number, times: orNull(shape.number), minCalls: shape.integer }),
  ),
  shadow: shape.number,
  onAbort: oneOf('rollback', 'hold'),
  inStage: BY_GROUP,
  inAll: BY_GROUP,
} satisfies Record<keyof ReturnType<typeof showRollout>, object>);

/** Counts this process's calls in rollouts. The label `rollout` is a configured name. */
export const rolloutCalls = new Counter({
  name: 'tollgate_rollout_calls_total',
  help: 'Calls in a rollout, by group and by whether the upstream failed.',
  labelNames: ['rollout', 'group', 'outcome'] as const,
  registers: [metrics],
});

/** Exposes the progress of rollouts, which is read at each scrape. */
export function exposeRollouts(
  gateway: Pick<PluginGateway, 'configuration' | 'rollouts'>,
  engine: { rowOf(rollout: Rollout): Pick<RolloutRow, 'stage' | 'status'> | undefined },
): void {
  new Gauge({
    name: 'tollgate_rollout_share_ratio',
    help: 'Share of the callers in the treatment group of a rollout; 0 if it is rolled back or has not started.',
    labelNames: ['rollout'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name }, gateway.rollouts.position(each)?.share ?? 0);
    },
  });
  new Gauge({
    name: 'tollgate_rollout_stage',
    help: 'The stage of a rollout, from 1.',
    labelNames: ['rollout'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name }, engine.rowOf(each)?.stage ?? 0);
    },
  });
  new Gauge({
    name: 'tollgate_rollout_status',
    help: '1 for the current status of a rollout.',
    labelNames: ['rollout', 'status'],
    aggregator: 'max',
    registers: [metrics],
    collect() {
      this.reset();
      for (const each of gateway.configuration.rollouts)
        this.set({ rollout: each.name, status: engine.rowOf(each)?.status ?? 'not begun' }, 1);
    },
  });
  new Counter({
    name: 'tollgate_rollout_mirrors_dropped_total',
    help: 'Calls that were not mirrored to the treatment because too many mirrored calls were running.',
    registers: [metrics],
    collect() {
      this.reset();
      this.inc(gateway.rollouts.mirrorsDropped);
    },
  });
}
