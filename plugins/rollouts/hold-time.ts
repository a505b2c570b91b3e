import type { RolloutRow } from './store';

/** How often a node writes that it watches a rollout. */
const NOTED_EVERY_MS = 5_000;

/** A rollout that no node watched for longer than this did not hold meanwhile. */
const UNWATCHED_MS = 30_000;

type Watched = Pick<RolloutRow, 'stage_since' | 'followed_at'>;

/**
 * Returns what to write about a watched rollout; undefined while nothing is due. Time without a watching node does not count as
 * held, nor does a jump of the database's clock. `resume` excludes the time of a pause.
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

/** Returns the beginning of the stage, moved by the time since the last change, in which the rollout stood still. */
export function afterStandstill(
  { stage_since, changed_at }: Pick<RolloutRow, 'stage_since' | 'changed_at'>,
  now: Date,
) {
  return new Date(stage_since.getTime() + now.getTime() - changed_at.getTime());
}
