import type { Guard, GuardName, Rollout, RolloutGroup } from '../../core/rollouts/rollout';
import { addCounts, type GroupCounts, NOTHING_SEEN } from './counts';
import { compare, seenBy } from './guards';

/** Where what was seen before the stages of a run were changed under it stands. */
export const BEFORE_ITS_STAGES = 0;

export type Status = 'running' | 'paused' | 'held' | 'rolled-back' | 'completed';

/** How often each guard has looked in the stage, and how many calls it had seen when it last did. */
export type Looks = Readonly<Partial<Record<GuardName, { readonly times: number; readonly seen: number }>>>;

export interface Progress {
  readonly status: Status;
  /** From 1. */
  readonly stage: number;
  readonly stageSinceMs: number;
  readonly looks: Looks;
}

export type CountsOf = (stage: number, group: RolloutGroup) => GroupCounts | undefined;

export interface Decision {
  readonly do: 'wait' | 'advance' | 'complete' | 'abort';
  /** In words: what it waits for, or why it ends. */
  readonly why: string;
  readonly looks: Looks;
}

/** Of a rollout whose two groups do not differ, at most this share is aborted. */
export const FALSE_ABORTS = 0.01;

/**
 * A guard looks again when it has seen a quarter more, or as many more as it first wanted: who fails only after a hundred thousand
 * good calls is not to fail a quarter of that before it is seen.
 */
const LOOKS_AGAIN = 1.25;

/**
 * What is to be done about a rollout now. Guards look while it goes on, and every look could be wrong: so the chance of a false
 * abort is shared out among stages and guards, and of a guard's share its k-th look in a stage has 1 / (k (k + 1)), which adds up
 * to the whole however often it looks.
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

/** The control group of the stage; where hardly anybody is left in it, with those of the stages before. */
function controlFor(guard: Guard, stage: number, treatment: GroupCounts, counts: CountsOf): GroupCounts {
  let control = counts(stage, 'control') ?? NOTHING_SEEN;
  const isEnough = () => seenBy(guard, treatment, control).control >= guard.minCalls;
  for (let before = stage - 1; before >= BEFORE_ITS_STAGES && !isEnough(); before -= 1)
    control = addCounts(control, counts(before, 'control') ?? NOTHING_SEEN);
  return control;
}
