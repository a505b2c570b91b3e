import { isDeepStrictEqual } from 'node:util';
import type { Rollout } from '../../core/rollouts/rollout';

/** The written progress of a rollout. */
interface Placed {
  readonly shares: readonly number[];
  readonly stage: number;
}

/** Where a rollout continues after its stages were changed. */
export interface Restaged {
  readonly stage: number;
  /** Whether the stages up to this one are unchanged, so that their counts still belong to them. */
  readonly isSameSoFar: boolean;
}

export function sharesOf({ stages }: Pick<Rollout, 'stages'>): readonly number[] {
  return stages.map(({ share }) => share);
}

export function hasStagesOf({ shares }: Pick<Placed, 'shares'>, rollout: Pick<Rollout, 'stages'>): boolean {
  return isDeepStrictEqual(shares, sharesOf(rollout));
}

/** Continues at the last stage with at most the current share of callers; if all have more, at the first. */
export function restage({ shares, stage }: Placed, rollout: Pick<Rollout, 'stages'>): Restaged {
  const next = sharesOf(rollout);
  if (stage <= next.length && isDeepStrictEqual(shares.slice(0, stage), next.slice(0, stage)))
    return { stage, isSameSoFar: true };
  const share = shares[stage - 1] ?? 0;
  const last = next.findLastIndex((each) => each <= share);
  return { stage: Math.max(last, 0) + 1, isSameSoFar: false };
}
