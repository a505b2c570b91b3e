import { listOf, object, oneOf, orNull, shape } from '../../core/http/shape';
import { formatUsd } from '../../core/money';
import { describeChange } from '../../core/rollouts/plan';
import type { Rollout } from '../../core/rollouts/rollout';
import { addCounts, countOf, type GroupCounts, NOTHING_SEEN } from './counts';
import { decide } from './decide';
import { progressOf } from './engine';
import { p95 } from './guards';
import type { RolloutRow, SeenOfRun } from './store';

export const STATUSES = ['not begun', 'running', 'paused', 'held', 'rolled-back', 'completed'] as const;
const GROUPS = ['control', 'candidate', 'shadow'] as const;

/** Shows a rollout to operators. `row` and `seen` belong to its run; `row` is absent before a node has begun the rollout. */
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
    waitsFor: row !== undefined && isUnderWay ? decide(rollout, progressOf(row), seen, nowMs).why : null,
    reason: row?.reason ?? null,
    changedAt: row?.changed_at.toISOString() ?? null,
    stages: stages.map(({ share: planned, holdMs }) => ({ share: asPercent(planned), holdSeconds: holdMs / 1_000 })),
    guards: guards.map(({ name: guard, tolerance, minCalls }) => ({ name: guard, tolerance, minCalls })),
    shadow: asPercent(shadow),
    onAbort,
    inStage: byGroup((group) => seen(stage, group) ?? NOTHING_SEEN),
    inAll: byGroup((group) =>
      [...stages.keys(), stages.length].map((each) => seen(each, group) ?? NOTHING_SEEN).reduce(addCounts),
    ),
  };
}

function byGroup(countsOf: (group: (typeof GROUPS)[number]) => GroupCounts) {
  const shown = (group: (typeof GROUPS)[number]) => showCounts(countsOf(group));
  return { control: shown('control'), candidate: shown('candidate'), shadow: shown('shadow') };
}

function showCounts(counts: GroupCounts) {
  const { calls, errors, hurt, costE8, charged, firstTokens, wholeAnswers } = counts;
  return {
    calls,
    errors,
    errorRate: calls === 0 ? null : errors / calls,
    callersHurt: hurt,
    streams: countOf(firstTokens),
    p95FirstTokenMs: p95(firstTokens) ?? null,
    wholeAnswers: countOf(wholeAnswers),
    p95WholeMs: p95(wholeAnswers) ?? null,
    costUsd: formatUsd(costE8),
    meanCostUsd: charged === 0 ? null : formatUsd(costE8 / BigInt(charged)),
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

const BY_GROUP = object({ control: COUNTS, candidate: COUNTS, shadow: COUNTS });

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
  guards: listOf(object({ name: shape.text, tolerance: shape.number, minCalls: shape.integer })),
  shadow: shape.number,
  onAbort: oneOf('rollback', 'hold'),
  inStage: BY_GROUP,
  inAll: BY_GROUP,
} satisfies Record<keyof ReturnType<typeof showRollout>, object>);
