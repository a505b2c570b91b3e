import type { Guard, GuardName, Rollout, RolloutGroup } from '../../core/rollouts/rollout';
import { addCounts, type GroupCounts, NOTHING_SEEN } from './counts';
import { compare, seenBy } from './guards';

/** The number of the stage that keeps a run's counts from before its stages were changed. */
export const BEFORE_ITS_STAGES = 0;

export type Status = 'running' | 'paused' | 'held' | 'rolled-back' | 'completed';

/** How often each guard has looked in the stage, and how many calls it had seen at its last look. */
export type Looks = Readonly<Partial<Record<GuardName, { readonly times: number; readonly seen: number }>>>;

export interface Progress {
  readonly status: Status;
  /** The current stage, counted from 1. */
  readonly stage: number;
  readonly stageSinceMs: number;
  readonly looks: Looks;
}

export type CountsOf = (stage: number, group: RolloutGroup) => GroupCounts | undefined;

export interface Decision {
  readonly do: 'wait' | 'advance' | 'complete' | 'abort';
  /** What the rollout waits for, or why it ends, for operators. */
  readonly why: string;
  readonly looks: Looks;
}

/** The largest share of rollouts that are aborted although their two groups do not differ. */
export const FALSE_ABORTS = 0.01;

/**
 * A guard looks again after a quarter more calls, or after `minCalls` more. The second bound matters for a treatment that fails
 * only after 100,000 good calls: it must not fail 25,000 calls before the next look.
 */
const LOOKS_AGAIN = 1.25;

/**
 * Decides what to do about a rollout now. Every look of a guard can be wrong, so stages and guards share the chance of a false
 * abort. A guard's k-th look in a stage gets 1 / (k (k + 1)) of the guard's share. These parts never add up to more than the
 * share.
 */
export function decide(rollout: Rollout, progress: Progress, counts: CountsOf, nowMs: number): Decision {
  const { status, stage } = progress;
  const { stages, guards } = rollout;
  const current = stages[stage - 1];
  if ((status !== 'running' && status !== 'paused') || current === undefined)
    return { do: 'wait', why: 'nothing: it is not running', looks: progress.looks };
  const looks: { -readonly [name in GuardName]?: Looks[name] } = { ...progress.looks };
  const missing: string[] = [];
  for (const guard of current.share === 0 ? [] : guards) {
    const treatment = counts(stage, 'candidate') ?? NOTHING_SEEN;
    const control = controlFor(guard, stage, treatment, counts);
    const { treatment: seen, control: compared } = seenBy(guard, treatment, control);
    if (seen < guard.minCalls || compared < guard.minCalls) {
      missing.push(
        `${guard.name} has seen ${seen} calls of the treatment group and ${compared} of the control group, of ${guard.minCalls}`,
      );
      continue;
    }
    const last = looks[guard.name];
    if (last !== undefined && seen < Math.min(last.seen * LOOKS_AGAIN, last.seen + guard.minCalls)) continue;
    const look = (last?.times ?? 0) + 1;
    looks[guard.name] = { times: look, seen };
    const finding = compare(guard, treatment, control);
    const bound = FALSE_ABORTS / (stages.length * guards.length) / (look * (look + 1));
    if (finding.pValue < bound)
      return { do: 'abort', why: `${guard.name}: ${finding.says()}; p = ${finding.pValue.toExponential(1)}`, looks };
  }
  if (status === 'paused') return { do: 'wait', why: 'an operator, because it is paused', looks };
  if (nowMs < progress.stageSinceMs + current.holdMs) return { do: 'wait', why: 'the end of its stage', looks };
  if (missing.length > 0) return { do: 'wait', why: missing.join('; '), looks };
  if (stage < stages.length) return { do: 'advance', why: 'the stage is over and no guard objects', looks };
  return { do: 'complete', why: 'the last stage is over and no guard objects', looks };
}

/** Returns the counts of the stage's control group. If it has too few calls, adds those of the stages before. */
function controlFor(guard: Guard, stage: number, treatment: GroupCounts, counts: CountsOf): GroupCounts {
  let control = counts(stage, 'control') ?? NOTHING_SEEN;
  const isEnough = () => seenBy(guard, treatment, control).control >= guard.minCalls;
  for (let before = stage - 1; before >= BEFORE_ITS_STAGES && !isEnough(); before -= 1)
    control = addCounts(control, counts(before, 'control') ?? NOTHING_SEEN);
  return control;
}
