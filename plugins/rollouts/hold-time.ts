import type { RolloutRow } from './store';

/** So often it is written down that a rollout is watched. */
const NOTED_EVERY_MS = 5_000;

/** Whoever has not been watched for so long has not held meanwhile. */
const UNWATCHED_MS = 30_000;

type Watched = Pick<RolloutRow, 'stage_since' | 'followed_at'>;

/**
 * What is to be written down of a rollout that is being watched; undefined: nothing yet. Time in which no node could watch it, or by
 * which the database's clock was set, does not count as held; nor does what passes while it is paused, which `resume` sees to.
 */
export function watchedAt(
  { status, stage_since, followed_at }: Watched & Pick<RolloutRow, 'status'>,
  now: Date,
): Watched | undefined {
  const passedMs = now.getTime() - followed_at.getTime();
  if (passedMs >= 0 && passedMs < NOTED_EVERY_MS) return undefined;
  const isUnwatched = passedMs < 0 || passedMs > UNWATCHED_MS;
  const shiftMs = isUnwatched && status === 'running' ? passedMs : 0;
  return { stage_since: new Date(stage_since.getTime() + shiftMs), followed_at: now };
}

/** The stage's beginning as if it had stood still since the last change. */
export function afterStandstill(
  { stage_since, changed_at }: Pick<RolloutRow, 'stage_since' | 'changed_at'>,
  now: Date,
) {
  return new Date(stage_since.getTime() + now.getTime() - changed_at.getTime());
}
