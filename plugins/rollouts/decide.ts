import type { Guard, GuardName, Rollout, RolloutGroup } from '../../core/rollouts/rollout';
import { addCounts, describeLine, type GuardCounts, type GuardLine, isWorse, linesOf, NOTHING_SEEN } from './guards';

/** The stage number under which a run keeps its counts from before an operator changed the rollout's stages. No real stage has this number. */
export const BEFORE_ITS_STAGES = 0;

export type Status = 'running' | 'paused' | 'held' | 'rolled-back' | 'completed';

/** The last look (comparison) of each guard in the stage: how many calls of the treatment it compared, and whether the treatment was worse. */
export type Looks = Readonly<Partial<Record<GuardName, { readonly seen: number; readonly isWorse: boolean }>>>;

export interface RolloutProgress {
  readonly status: Status;
  /** The current stage, counted from 1. */
  readonly stage: number;
  readonly stageSinceMs: number;
  readonly looks: Looks;
}

type CountsOf = (stage: number, group: RolloutGroup) => GuardCounts | undefined;

export interface RolloutDecision {
  readonly do: 'wait' | 'advance' | 'complete' | 'abort';
  /** The reason of the decision for operators: what the rollout waits for, or why it continues or ends. */
  readonly why: string;
  readonly looks: Looks;
}

/**
 * Returns how many calls of one account the guards compare between two looks (comparisons). The limit keeps a single account from deciding.
 * undefined: no limit, because the rollout has no guards, or because it assigns each request to a group at random. Every account then has
 * calls in both groups.
 */
export function callsPerAccount({ stickyBy, guards }: Pick<Rollout, 'stickyBy' | 'guards'>): number | undefined {
  if (stickyBy === 'request' || guards.length === 0) return undefined;
  return Math.max(1, Math.floor(Math.min(...guards.map(({ minCalls }) => minCalls)) / 10));
}

/**
 * Decides the next step of a rollout. A guard first looks (compares both groups) after `minCalls` calls of the treatment, then after each
 * further `minCalls / 2`. It aborts only if two successive looks find the treatment worse, because a single one may be chance.
 */
export function decideRollout(
  rollout: Rollout,
  progress: RolloutProgress,
  counts: CountsOf,
  nowMs: number,
): RolloutDecision {
  const { status, stage } = progress;
  const { stages, guards } = rollout;
  const current = stages[stage - 1];
  if ((status !== 'running' && status !== 'paused') || current === undefined)
    return { do: 'wait', why: 'nothing: it is not running', looks: progress.looks };
  const looks: { -readonly [name in GuardName]?: Looks[name] } = { ...progress.looks };
  const missing: string[] = [];
  const treatment = counts(stage, 'treatment') ?? NOTHING_SEEN;
  for (const guard of current.share === 0 ? [] : guards) {
    const { name, minCalls } = guard;
    const lines = compare(guard, stage, treatment, counts);
    const judged = lines.filter((line) => line.treatment.of >= minCalls && line.control.of >= minCalls);
    if (judged.length === 0) {
      const [line] = lines.toSorted((one, other) => other.treatment.of - one.treatment.of);
      const [seen, compared] = [line?.treatment.of ?? 0, line?.control.of ?? 0];
      const cap = callsPerAccount(rollout);
      missing.push(
        `${name} has seen ${seen} calls of the treatment group and ${compared} of the control group, of ${minCalls}${cap === undefined ? '' : ` (at most ${cap} of each account count)`}`,
      );
      continue;
    }
    const seen = judged.reduce((sum, line) => sum + line.treatment.of, 0);
    const last = looks[name];
    if (last === undefined || seen >= last.seen + minCalls / 2) {
      const worse = judged.find((line) => isWorse(line, guard));
      looks[name] = { seen, isWorse: worse !== undefined };
      if (worse !== undefined && last?.isWorse === true)
        return { do: 'abort', why: `${name}: ${describeLine(worse)}`, looks };
    }
    if (looks[name]?.isWorse === true) missing.push(`${name}, which looks again at ${minCalls / 2} more calls`);
  }
  if (status === 'paused') return { do: 'wait', why: 'an operator, because it is paused', looks };
  if (nowMs < progress.stageSinceMs + current.holdMs) return { do: 'wait', why: 'the end of its stage', looks };
  if (missing.length > 0) return { do: 'wait', why: missing.join('; '), looks };
  if (stage < stages.length) return { do: 'advance', why: 'the stage is over and no guard objects', looks };
  return { do: 'complete', why: 'the last stage is over and no guard objects', looks };
}

/** Compares the treatment with the stage's control group. While that control group has too few calls, adds the earlier stages' control groups. */
function compare(guard: Guard, stage: number, treatment: GuardCounts, counts: CountsOf): readonly GuardLine[] {
  let control = NOTHING_SEEN;
  for (let from = stage; ; from -= 1) {
    control = addCounts(control, counts(from, 'control') ?? NOTHING_SEEN);
    const lines = linesOf(guard, treatment, control);
    if (from === BEFORE_ITS_STAGES || lines.some((line) => line.control.of >= guard.minCalls)) return lines;
  }
}
