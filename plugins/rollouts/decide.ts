import type { Arm, Guard, GuardName, Rollout } from '../../core/rollout';
import { type ArmCounts, addCounts, NOTHING_SEEN } from './counts';
import { compare, seenBy } from './guards';

export type Status = 'running' | 'paused' | 'held' | 'rolled-back' | 'completed';

/** How often each guard has looked in the stage. */
export type Looks = Readonly<Partial<Record<GuardName, number>>>;

export interface Progress {
  readonly status: Status;
  /** From 1. */
  readonly stage: number;
  readonly stageSinceMs: number;
  readonly looks: Looks;
}

export type CountsOf = (stage: number, arm: Arm) => ArmCounts | undefined;

export interface Decision {
  readonly do: 'wait' | 'advance' | 'complete' | 'abort';
  /** In words: what it waits for, or why it ends. */
  readonly why: string;
  readonly looks: Looks;
}

/** Of a rollout whose candidate is equal to the control group in all, at most this share is aborted. */
export const FALSE_ABORTS = 0.01;

/** A guard looks again when it has seen a quarter more. */
const LOOKS_AGAIN = Math.log(1.25);

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
    return { do: 'wait', why: 'nothing: it is not under way', looks: progress.looks };
  const looks: Partial<Record<GuardName, number>> = { ...progress.looks };
  const missing: string[] = [];
  for (const guard of current.share === 0 ? [] : guards) {
    const candidate = counts(stage, 'candidate') ?? NOTHING_SEEN;
    const control = controlFor(guard, stage, counts);
    const [seen, compared] = [seenBy(guard, candidate), seenBy(guard, control)];
    if (seen < guard.minCalls || compared < guard.minCalls) {
      missing.push(
        `${guard.name} has seen ${seen} calls of the candidate and ${compared} of the control group, of ${guard.minCalls}`,
      );
      continue;
    }
    const look = 1 + Math.floor(Math.log(seen / guard.minCalls) / LOOKS_AGAIN);
    if (look <= (looks[guard.name] ?? 0)) continue;
    looks[guard.name] = look;
    const finding = compare(guard, candidate, control);
    const bound = FALSE_ABORTS / (stages.length * guards.length) / (look * (look + 1));
    if (finding.pValue < bound)
      return { do: 'abort', why: `${guard.name}: ${finding.says()}; p = ${finding.pValue.toExponential(1)}`, looks };
  }
  if (status === 'paused') return { do: 'wait', why: 'an operator, who has paused it', looks };
  if (nowMs < progress.stageSinceMs + current.holdMs) return { do: 'wait', why: 'the end of its stage', looks };
  if (missing.length > 0) return { do: 'wait', why: missing.join('; '), looks };
  if (stage < stages.length) return { do: 'advance', why: 'the stage is over and no guard objects', looks };
  return { do: 'complete', why: 'the last stage is over and no guard objects', looks };
}

/** The control group of the stage; where hardly anybody is left in it, with those of the stages before. */
function controlFor(guard: Guard, stage: number, counts: CountsOf): ArmCounts {
  let control = counts(stage, 'control') ?? NOTHING_SEEN;
  for (let before = stage - 1; before > 0 && seenBy(guard, control) < guard.minCalls; before -= 1)
    control = addCounts(control, counts(before, 'control') ?? NOTHING_SEEN);
  return control;
}
